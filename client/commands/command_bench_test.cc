// Tests `hooke bench` with a script in place of hooke-bench. It checks the command that hooke starts, the file that
// hooke writes, and its output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/process/run_program.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kDocument[] =
    R"({"cells":1,"cells_planned":1,"rules":0,"tuning":"the tuning\n","measurements":[],"choices":[]})";

class CommandBenchTest : public ::testing::Test {
 protected:
  CommandBenchTest() { std::filesystem::create_directories(folder_); }
  ~CommandBenchTest() override { std::filesystem::remove_all(folder_); }

  void BenchPrints(const std::string& document) {
    std::ofstream(folder_ + "/document") << document;
    BenchIs(absl::StrCat("echo \"$@\" > ", folder_, "/arguments; cat ", folder_, "/document"));
  }
  void BenchIs(const std::string& script) {
    const std::string path = folder_ + "/hooke-bench";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  ProgramOptions Options(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"client/hooke", "bench"});
    arguments.insert(arguments.end(), {"--programs-dir", folder_});
    ProgramOptions options;
    options.arguments = std::move(arguments);
    options.environment = {"PATH=/usr/bin:/bin", "HOME=" + folder_};
    return options;
  }
  ProgramOutcome Run(const std::vector<std::string>& arguments) { return RunProgram(Options(arguments)); }
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/command_bench_", getpid());
};

// `hooke bench tune` passes its flags to hooke-bench, and writes the tuning to the file. A second run replaces the file
// only with --force.
TEST_F(CommandBenchTest, TuneWritesTheFile) {
  const std::string out = folder_ + "/tuning.json";
  BenchPrints(kDocument);
  const ProgramOutcome result = Run({"tune", "--ranks", "3", "--seconds", "0.5", "--out", out});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Read("arguments"), "tune --ranks=3 --seconds=0.5\n");
  EXPECT_EQ(Read("tuning.json"), "the tuning\n");
  EXPECT_THAT(result.out, HasSubstr("a job uses it with `collectives: {tuning: "));
  std::filesystem::remove(folder_ + "/arguments");
  const ProgramOutcome again = Run({"tune", "--out", out});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("the file exists already; choose another name, or --force to replace it"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/arguments")) << "measured for nothing";
  EXPECT_EQ(Run({"tune", "--out", out, "--force"}).exit_code, 0);
}

// Without --out the tuning is printed. With --output json, one object has everything.
TEST_F(CommandBenchTest, TunePrints) {
  BenchPrints(kDocument);
  EXPECT_THAT(Run({"tune"}).out, HasSubstr("\nthe tuning\n"));
  EXPECT_THAT(Run({"tune", "--output", "json"}).out, HasSubstr("\"tuning\": \"the tuning\\n\""));
  EXPECT_THAT(Run({"explain"}).out, HasSubstr("OPERATION  VALUES"));
}

// hooke-bench reports its own errors, and its exit code becomes hooke's. If hooke-bench is missing or dies, hooke
// reports that.
TEST_F(CommandBenchTest, Failures) {
  const ProgramOutcome missing = Run({"tune"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("hooke-bench: no such program; hooke-bench is looked for beside hooke"));
  BenchIs("echo 'hooke-bench: wrong' >&2; exit 2");
  const ProgramOutcome wrong = Run({"explain", "--tuning", "x"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "hooke-bench: wrong\n");
  BenchIs("kill -9 $$");
  EXPECT_THAT(Run({"tune"}).err, HasSubstr("was killed by signal 9"));
  BenchPrints("{}");
  EXPECT_THAT(Run({"tune"}).err, HasSubstr("are both of one version?"));
}

// Ctrl-C ends hooke-bench, and no file is written.
TEST_F(CommandBenchTest, Interrupt) {
  BenchIs(absl::StrCat("trap 'touch ", folder_, "/ended; exit 130' TERM; touch ", folder_,
                       "/started; echo started; while :; do sleep 0.1; done"));
  Program program(Options({"tune", "--out", folder_ + "/tuning.json"}));
  for (int i = 0; i < 300 && !std::filesystem::exists(folder_ + "/started"); ++i) {
    program.Prints("never", absl::Milliseconds(100));
  }
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait().exit_code, 130);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/ended"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/tuning.json"));
}

// A flag that belongs to the other subcommand is an error.
TEST_F(CommandBenchTest, FlagsBelongTogether) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"tune", "--nodes", "2"}, {"explain", "--out", "x"}, {"tune", "--force"}, {"measure"}, {}}) {
    EXPECT_EQ(Run(arguments).exit_code, 2);
  }
  EXPECT_THAT(Run({"tune", "--ranks", "1025"}).err, HasSubstr("`bench tune` starts at most 1024"));
  EXPECT_EQ(Run({"tune", "--tuning", "x"}).err, "hooke: --tuning goes with `bench explain`\n");
}

}  // namespace
}  // namespace hooke
