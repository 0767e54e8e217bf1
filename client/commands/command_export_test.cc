// Tests `hooke export --format torchscript` with a script in place of hooke-rank. It checks the command that hooke
// starts, the file that hooke writes, and its output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/fake_servers.h"
#include "client/process/run_program.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class CommandExportTest : public ::testing::Test {
 protected:
  CommandExportTest() {
    std::filesystem::create_directories(folder_);
    std::filesystem::create_directories(programs_);
    v1::PullResponse header;
    header.mutable_header()->set_shard_count(1);
    v1::Layout& layout = *header.mutable_header()->mutable_layout();
    v1::Parameter* parameter = layout.add_parameters();
    parameter->set_name("w");
    parameter->set_type(v1::Parameter::FLOAT32);
    parameter->add_shape(2);
    v1::ModelDescription& model = *layout.mutable_model();
    model.set_architecture("mlp");
    model.set_architecture_version(1);
    model.add_input_shape(784);
    model.set_input_type("uint8");
    model.set_input_scale(255);
    model.set_mean(0.25);
    model.set_deviation(0.5);
    model.set_classes(10);
    v1::PullResponse block;
    block.mutable_block()->set_values(std::string(8, '\0'));
    server_.responses = {header, block};
    parameters_ = std::make_unique<FakeListener>(server_);
    coordinator_.jobs["fashion-1"] = {SucceededJob("fashion-1")};
    coordinator_.jobs["fashion-1"].back().add_servers(parameters_->address());
    listener_ = std::make_unique<FakeListener>(coordinator_);
  }
  ~CommandExportTest() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::remove_all(programs_);
  }

  // Writes the program that stands for hooke-rank. `script` is shell text; $1 and $2 are its arguments.
  void RankIs(const std::string& script) {
    const std::string path = programs_ + "/hooke-rank";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  ProgramOptions Options(const std::vector<std::string>& more) const {
    ProgramOptions options;
    options.arguments = {"client/hooke", "export",         "fashion-1", path_,           "--format",
                         "torchscript",  "--programs-dir", programs_,   "--coordinator", listener_->address()};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.environment = {"PATH=/usr/bin:/bin", "HOME=" + programs_};
    return options;
  }
  ProgramOutcome Run(const std::vector<std::string>& more = {}) const { return RunProgram(Options(more)); }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/command_export_", getpid());
  const std::string programs_ = folder_ + "_programs";
  const std::string path_ = folder_ + "/model.pt";
  FakeParameterServer server_;
  FakeCoordinatorService coordinator_;
  std::unique_ptr<FakeListener> parameters_;
  std::unique_ptr<FakeListener> listener_;
};

// hooke-rank gets the center as safetensors with its metadata. The file that hooke-rank writes becomes the user's file,
// and no other file stays.
TEST_F(CommandExportTest, HookeRankMakesTheFile) {
  RankIs(absl::StrCat("cp \"${1#--model=}\" ", programs_, "/seen; printf module > \"${2#--torchscript=}\""));
  const ProgramOutcome first = Run({"--output", "json"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\"format\":\"torchscript\""));
  EXPECT_THAT(first.out, HasSubstr("\"bytes\":6"));
  EXPECT_EQ(Read(path_), "module");
  EXPECT_THAT(Read(programs_ + "/seen"), HasSubstr(R"("mean":"0.25")"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()), 1);
  RankIs("printf another > \"${2#--torchscript=}\"");
  const ProgramOutcome second = Run();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.err, absl::StrCat("hooke: ", path_,
                                     ": the file exists already; choose another name, or --force to replace it\n"));
  EXPECT_EQ(Read(path_), "module");
  EXPECT_EQ(Run({"--force"}).exit_code, 0);
  EXPECT_EQ(Read(path_), "another");
}

// If hooke-rank is missing, fails, dies or writes nothing, the error says what to do, and no file is left.
TEST_F(CommandExportTest, FailuresLeaveNothing) {
  const struct {
    std::string script;  // Empty: there is no program.
    std::string error;
  } cases[] = {
      {"", absl::StrCat("hooke: ", programs_, "/hooke-rank: no such program; hooke-rank makes the TorchScript file")},
      {"echo 'hooke-rank: the disk is full' >&2; printf half > \"${2#--torchscript=}\"; exit 1",
       absl::StrCat("hooke-rank: the disk is full\nhooke: ", programs_, "/hooke-rank has failed (exit status 1); ",
                    path_, " was not written. --format safetensors does without it\n")},
      {"kill -9 $$", "/hooke-rank was killed by signal 9; "},
      {"exit 0", absl::StrCat("/hooke-rank has not written ", path_,
                              ": No such file or directory; --format safetensors does without it\n")},
  };
  for (const auto& one : cases) {
    if (!one.script.empty()) RankIs(one.script);
    const ProgramOutcome result = Run();
    EXPECT_EQ(result.exit_code, 1) << one.script;
    EXPECT_THAT(result.err, HasSubstr(one.error));
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << one.script;
  }
}

// If the file cannot be made, the error names the user's file, not a temporary one.
TEST_F(CommandExportTest, AnErrorNamesTheFileThatWasGiven) {
  RankIs("exit 0");
  const std::string path = folder_ + "/none/model.pt";
  ProgramOptions options = Options({});
  options.arguments[3] = path;
  const ProgramOutcome result = RunProgram(options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat("hooke: ", path, ": cannot be made: No such file or directory")));
  EXPECT_THAT(result.err, testing::Not(HasSubstr(".part-")));
}

// A note may repeat text from a peer, here an address. The text cannot steer the terminal.
TEST_F(CommandExportTest, ANoteCannotSteerTheTerminal) {
  FakeParameterServer second;
  second.responses = {server_.responses[0]};
  for (FakeParameterServer* server : {&server_, &second}) {
    server->responses[0].mutable_header()->set_shard_count(2);
  }
  second.responses[0].mutable_header()->set_shard_index(1);
  second.responses[0].mutable_header()->mutable_layout()->mutable_model()->set_mean(0.75);
  const FakeListener listener(second);
  // gRPC reads the port's digits and ignores the rest.
  coordinator_.jobs["fashion-1"].back().add_servers(listener.address() + "\x1b[31m");
  ProgramOptions options = Options({});
  options.arguments[5] = "safetensors";
  const ProgramOutcome result = RunProgram(options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr(absl::StrCat("server ", listener.address(), " [31m describes the model otherwise")));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("\x1b")));
}

// A center without a description cannot become a TorchScript module. The error names the format that works.
TEST_F(CommandExportTest, NeedsADescription) {
  RankIs("exit 0");
  server_.responses[0].mutable_header()->mutable_layout()->clear_model();
  const ProgramOutcome result = Run();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("do not know how the model's input is normalized"));
  EXPECT_THAT(result.err, HasSubstr("--format safetensors exports what is known\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// Ctrl-C while hooke-rank works ends it, and no file is left.
TEST_F(CommandExportTest, AnInterruptLeavesNothing) {
  RankIs(absl::StrCat("printf half > \"${2#--torchscript=}\"; echo > ", programs_, "/started; exec sleep 60"));
  Program program(Options({}));
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!std::filesystem::exists(programs_ + "/started") && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  ASSERT_TRUE(std::filesystem::exists(programs_ + "/started"));
  program.Signal(SIGINT);
  const ProgramOutcome result = program.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.err, absl::StrCat("hooke: interrupted; ", path_, " was not written\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// An unknown format is a wrong command line, and the error names the known ones.
TEST_F(CommandExportTest, UnknownFormat) {
  ProgramOptions options = Options({});
  options.arguments[5] = "onnx";
  const ProgramOutcome result = RunProgram(options);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("torchscript"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// The center of a job with a command is exported with the tensor names that the program gave. Only TorchScript would
// need a built-in network. It is refused, and the error names the format that works.
TEST_F(CommandExportTest, ACommandsCenter) {
  server_.responses[0].mutable_header()->mutable_layout()->clear_model();
  coordinator_.jobs["fashion-1"].back().mutable_spec()->clear_model();
  coordinator_.jobs["fashion-1"].back().mutable_spec()->mutable_command()->add_arguments("python3");
  RankIs("exit 1");
  const ProgramOutcome refused = Run();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(
      refused.err,
      "hooke: job fashion-1 runs a command, and only that program knows the network that a TorchScript file holds; "
      "--format safetensors writes the tensors by their names\n");
  ProgramOptions options = Options({});
  options.arguments = {"client/hooke", "export", "fashion-1", path_, "--coordinator", listener_->address()};
  const ProgramOutcome exported = RunProgram(options);
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(Read(path_), HasSubstr(R"("w":{)"));
  EXPECT_THAT(Read(path_), ::testing::Not(HasSubstr("architecture")));
}

}  // namespace
}  // namespace hooke
