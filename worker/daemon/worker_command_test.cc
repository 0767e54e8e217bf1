// Tests a daemon that runs commands, with a real mpirun and shell scripts as ranks. The coordinator is a fake that the
// test directs.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/file_manifest.h"
#include "spdlog/sinks/null_sink.h"
#include "wire/cluster_token.h"
#include "wire/sha256.h"
#include "worker/daemon/fake_coordinator.h"
#include "worker/daemon/flags.h"
#include "worker/daemon/worker_daemon.h"
#include "worker/gpus/choose_gpus.h"
#include "worker/launch/find_program.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kFailedPrecondition = static_cast<int>(absl::StatusCode::kFailedPrecondition);

class WorkerCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(work_);
    coordinator_ = std::make_unique<FakeCoordinator>(FakeCoordinator::Options());
  }

  void TearDown() override {
    daemon_.reset();
    EXPECT_TRUE(!fs::exists(state_dir_ + "/groups") || fs::is_empty(state_dir_ + "/groups"));
    fs::remove_all(state_dir_);
    fs::remove_all(work_);
  }

  void StartDaemon(bool allow_commands = true, std::vector<GpuName> gpus = {}) {
    WorkerOptions options;
    options.coordinator = coordinator_->address();
    options.name = "w1";
    options.slots = 4;
    options.state_dir = state_dir_;
    options.allow_commands = allow_commands;
    options.gpus = std::move(gpus);
    options.gpus_file = work_ + "/gpus";
    options.launch.flavour = BuiltFlavour();
    options.launch.mpirun = FindProgram(MpirunNames(BuiltFlavour()), "/usr/local/bin:/usr/bin:/bin");
    options.launch.rank_binary = fs::absolute("worker/daemon/fake_rank").string();
    options.launch.as_root = geteuid() == 0;
    options.launch.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "FROM_WORKER=yes"};
    options.stop_grace = absl::Milliseconds(500);
    options.watch.launcher_grace = absl::Milliseconds(500);
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(std::move(options));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  v1::WorkerCommand Command(const std::vector<std::string>& arguments) const {
    v1::WorkerCommand command = StartCommand("", 2);
    v1::JobSpec& job = *command.mutable_start()->mutable_group()->mutable_job();
    job.clear_model();
    for (const std::string& argument : arguments) job.mutable_command()->add_arguments(argument);
    job.mutable_command()->set_directory(work_);
    return command;
  }

  // Runs `sh -c SCRIPT` as both ranks and returns the group's end. In the script $R is the rank.
  v1::GroupEnded RunShell(const std::string& script) {
    StartDaemon();
    const std::string with_rank = absl::StrCat("R=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; ", script);
    EXPECT_TRUE(coordinator_->Send(Command({"/bin/sh", "-c", with_rank})));
    return End();
  }

  v1::GroupEnded End() {
    const v1::WorkerMessage message = coordinator_->WaitFor(IsEnded);
    EXPECT_TRUE(message.has_event()) << "no end";
    return message.event().ended();
  }

  bool Logged(const std::string& line) {
    for (const v1::WorkerMessage& message : coordinator_->received()) {
      for (const std::string& one : message.log().lines()) {
        if (one == line) return true;
      }
    }
    return false;
  }

  const std::string state_dir_ = absl::StrCat(::testing::TempDir(), "/worker", getpid());
  const std::string work_ = absl::StrCat(::testing::TempDir(), "/work", getpid());
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<WorkerDaemon> daemon_;
};

// A command that knows nothing of Hooke finishes its group by exiting with status 0. Each line of its stdout and stderr
// is in the log before the end, with its rank. It runs in its directory, with its environment.
TEST_F(WorkerCommandTest, ExitsWithStatus0) {
  StartDaemon();
  v1::WorkerCommand command =
      Command({"sh", "-c", "echo out $A $FROM_WORKER; pwd; echo err >&2; test -f \"$HOOKE_START\" && echo \"$1\"", ":",
               "has: it's there"});
  (*command.mutable_start()->mutable_group()->mutable_job()->mutable_command()->mutable_environment())["A"] = "a b";
  ASSERT_TRUE(coordinator_->Send(command));
  const v1::GroupEnded end = End();
  EXPECT_TRUE(end.ok()) << end.message();
  EXPECT_EQ(end.message(), "all ranks have exited with status 0");
  for (const char* rank : {"rank 0", "rank 1"}) {
    for (const std::string& text : {std::string("out a b yes"), fs::canonical(work_).string(), std::string("err"),
                                    std::string("has: it's there")}) {
      EXPECT_TRUE(Logged(absl::StrCat("group 0 ", rank, ": ", text))) << rank << " " << text;
    }
  }
  EXPECT_TRUE(
      coordinator_->WaitFor([](const v1::WorkerMessage& m) { return m.has_hello(); }).hello().allows_commands());
}

// A job's files are fetched, and the command runs in a folder that holds them. The group's second start fetches
// nothing. The site's interpreter replaces python3.
TEST_F(WorkerCommandTest, RunsInTheFolderOfItsFiles) {
  v1::FileManifest manifest;
  FakeCoordinator::Options coordinator;
  for (const auto& [path, bytes] : std::map<std::string, std::string>{{"data/words", "one two"}, {"train", "cat $1"}}) {
    v1::FileEntry& entry = *manifest.add_entries();
    entry.set_path(path);
    entry.set_sha256(Sha256Of(bytes));
    entry.set_bytes(bytes.size());
    coordinator.files[entry.sha256()] = bytes;
  }
  const v1::FileSet set = FileSetOf(manifest);
  coordinator.files[set.manifest_sha256()] = ManifestBytes(manifest);
  coordinator_ = std::make_unique<FakeCoordinator>(coordinator);
  StartDaemon();
  v1::WorkerCommand command = Command({"python3", "train", "data/words"});
  v1::CommandSpec& spec = *command.mutable_start()->mutable_group()->mutable_job()->mutable_command();
  spec.clear_directory();
  *spec.mutable_files() = set;
  (*spec.mutable_sites())["default"].set_interpreter("/bin/sh");
  ASSERT_TRUE(coordinator_->Send(command));
  const v1::GroupEnded end = End();
  EXPECT_TRUE(end.ok()) << end.message();
  for (const char* rank : {"rank 0", "rank 1"}) EXPECT_TRUE(Logged(absl::StrCat("group 0 ", rank, ": one two")));
  EXPECT_TRUE(coordinator_->WaitFor(HasLogLine("group 0 worker: fetched 2 of 2 files, ")).has_log());
  command.mutable_start()->mutable_group()->set_incarnation(2);
  ASSERT_TRUE(coordinator_->Send(command));
  EXPECT_TRUE(coordinator_->WaitFor(HasLogLine("group 0 worker: fetched 0 of 2 files, 0 bytes, in ")).has_log());
  EXPECT_TRUE(coordinator_->WaitForCount(IsEnded, 2));
}

// If the coordinator does not send the job's files, the group ends, and its message says why.
TEST_F(WorkerCommandTest, SaysWhyFilesDoNotCome) {
  StartDaemon();
  v1::WorkerCommand command = Command({"true"});
  v1::CommandSpec& spec = *command.mutable_start()->mutable_group()->mutable_job()->mutable_command();
  spec.clear_directory();
  spec.mutable_files()->set_manifest_sha256(Sha256Of("x"));
  spec.mutable_files()->set_manifest_bytes(1);
  ASSERT_TRUE(coordinator_->Send(command));
  EXPECT_THAT(End().message(), testing::EndsWith("cannot be fetched from the coordinator at " +
                                                 coordinator_->address() + ": no such content"));
}

// A command may report hello and done, as libhooke does for a script. It is then watched like hooke-rank.
TEST_F(WorkerCommandTest, ReportsLikeARank) {
  StartDaemon();
  v1::WorkerCommand command = Command({"sh", "-c", "exec \"$0\" --start \"$HOOKE_START\" --threads=1",
                                       fs::absolute("worker/daemon/fake_rank").string()});
  command.mutable_start()->mutable_group()->mutable_job()->mutable_model()->set_name("done");
  ASSERT_TRUE(coordinator_->Send(command));
  const v1::GroupEnded end = End();
  EXPECT_TRUE(end.ok()) << end.message();
  EXPECT_EQ(end.message(), "all ranks are done");
  EXPECT_TRUE(coordinator_->WaitFor(IsStep(1, 1)).has_event());
}

// A script that raises ends its group at once, while the other rank would go on for ever. The message has the exit
// status and the end of its stderr, and the code keeps the coordinator from trying again.
TEST_F(WorkerCommandTest, ExitsWithStatus3) {
  const v1::GroupEnded end =
      RunShell("if [ $R = 1 ]; then echo out; echo first >&2; echo ValueError: x >&2; exit 3; fi; sleep 1000");
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.code(), kFailedPrecondition);
  EXPECT_EQ(end.message(), "rank 1 exited with status 3; the end of its stderr: first | ValueError: x");
  EXPECT_TRUE(Logged("group 0 rank 1: ValueError: x"));
}

// A killed command is tried again.
TEST_F(WorkerCommandTest, IsKilled) {
  const v1::GroupEnded end = RunShell("if [ $R = 1 ]; then kill -9 $$; fi; sleep 1000");
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(end.message(), StartsWith("rank 1 ended by signal 9 (Killed)"));
}

// Lines arrive in order, and none is lost.
TEST_F(WorkerCommandTest, PrintsMuch) {
  const v1::GroupEnded end = RunShell("if [ $R = 0 ]; then seq 20000; fi");
  EXPECT_TRUE(end.ok()) << end.message();
  int next = 1;
  for (const v1::WorkerMessage& message : coordinator_->received()) {
    for (const std::string& line : message.log().lines()) {
      if (line == absl::StrCat("group 0 rank 0: ", next)) ++next;
    }
  }
  EXPECT_EQ(next, 20001);
}

// If the program or its directory is not on this node, the group ends at once, with a code that fails the job. mpirun
// is not started.
TEST_F(WorkerCommandTest, ProgramOrDirectoryIsMissing) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(Command({"no-such-program"})));
  v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(end.message(), StartsWith("there is no program no-such-program on this node's PATH (/usr/local/bin:"));

  v1::WorkerCommand command = Command({"sh"});
  command.mutable_start()->mutable_group()->set_incarnation(2);
  command.mutable_start()->mutable_group()->mutable_job()->mutable_command()->set_directory(work_ + "/no");
  ASSERT_TRUE(coordinator_->Send(command));
  ASSERT_TRUE(coordinator_->WaitForCount(IsEnded, 2));
  for (const v1::WorkerMessage& message : coordinator_->received()) {
    if (message.event().group().incarnation() == 2) end = message.event().ended();
    EXPECT_FALSE(message.event().has_started());
  }
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(end.message(), AllOf(StartsWith("there is no folder "), HasSubstr("/no on this node")));
}

// A worker without --allow-commands runs none, whatever the coordinator says.
TEST_F(WorkerCommandTest, IsNotAllowed) {
  StartDaemon(/*allow_commands=*/false);
  ASSERT_TRUE(coordinator_->Send(Command({"sh", "-c", "echo > ran"})));
  const v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), kFailedPrecondition);
  EXPECT_EQ(end.message(),
            "this worker runs no commands; start hooke-worker with --allow-commands, and submit the job again");
  EXPECT_FALSE(fs::exists(work_ + "/ran"));
  EXPECT_FALSE(
      coordinator_->WaitFor([](const v1::WorkerMessage& m) { return m.has_hello(); }).hello().allows_commands());
}

// Each rank sees only the GPUs that it was given, and the log says which.
TEST_F(WorkerCommandTest, EachRankHasItsGpus) {
  StartDaemon(true, {"0", "1", "2", "3"});
  ASSERT_TRUE(coordinator_->Send(Command({"sh", "-c", "echo sees $CUDA_VISIBLE_DEVICES"})));
  const v1::GroupEnded end = End();
  EXPECT_TRUE(end.ok()) << end.message();
  EXPECT_TRUE(Logged("group 0 worker: GPUs on w1: rank 0 has 0; rank 1 has 1"));
  EXPECT_TRUE(Logged("group 0 rank 0: sees 0"));
  EXPECT_TRUE(Logged("group 0 rank 1: sees 1"));
}

// Ranks see as many as their job asks for, even if the worker has more for each slot.
TEST_F(WorkerCommandTest, RanksHaveAsManyGpusAsTheJobAsksFor) {
  StartDaemon(true, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"});
  v1::WorkerCommand command = Command({"sh", "-c", "echo sees $CUDA_VISIBLE_DEVICES"});
  command.mutable_start()->mutable_group()->mutable_job()->mutable_groups()->set_gpus_per_rank(2);
  ASSERT_TRUE(coordinator_->Send(command));
  EXPECT_TRUE(End().ok());
  EXPECT_TRUE(Logged("group 0 rank 0: sees 0,1"));
  EXPECT_TRUE(Logged("group 0 rank 1: sees 2,3"));
  EXPECT_EQ(coordinator_->WaitFor([](const v1::WorkerMessage& m) { return m.has_hello(); }).hello().gpus(), 12u);
}

// The job's own variable stays, even if it hides all GPUs.
TEST_F(WorkerCommandTest, TheJobsOwnGpus) {
  StartDaemon(true, {"0", "1"});
  v1::WorkerCommand command = Command({"sh", "-c", "echo sees \"[$CUDA_VISIBLE_DEVICES]\""});
  auto& environment =
      *command.mutable_start()->mutable_group()->mutable_job()->mutable_command()->mutable_environment();
  environment["CUDA_VISIBLE_DEVICES"] = "";
  ASSERT_TRUE(coordinator_->Send(command));
  EXPECT_TRUE(End().ok());
  for (const char* rank : {"rank 0", "rank 1"})
    EXPECT_TRUE(Logged(absl::StrCat("group 0 ", rank, ": sees []"))) << rank;
}

// Stopping the group ends a command that does not use Hooke.
TEST_F(WorkerCommandTest, IsStopped) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(Command({"sh", "-c", "echo ready; sleep 1000"})));
  ASSERT_TRUE(coordinator_->WaitFor(HasLogLine("ready")).has_log());
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  EXPECT_EQ(End().message(), "stopped: enough");
}

// Ranks and their children that ignore SIGTERM do not outlive their group, whether it is stopped or a rank of it fails.
// One child has a session of its own.
TEST_F(WorkerCommandTest, IgnoresSigterm) {
  const std::string script = absl::StrCat(
      "trap '' TERM; R=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; ",
      "if [ $R = 1 ]; then while [ ! -e fail ]; do sleep 0.05; done; exit 3; fi; ",
      "sleep 1000 & echo $$ $! > new; setsid sh -c 'echo $$ >> new; mv new pids; echo ready; exec sleep 1000' & ",
      "wait; sleep 1000");
  StartDaemon();
  for (const uint32_t start : {1, 2}) {
    fs::remove(work_ + "/pids");
    v1::WorkerCommand command = Command({"/bin/sh", "-c", script});
    command.mutable_start()->mutable_group()->set_incarnation(start);
    ASSERT_TRUE(coordinator_->Send(command));
    ASSERT_TRUE(coordinator_->WaitForCount(HasLogLine("ready"), start));
    std::vector<pid_t> pids;
    std::ifstream file(work_ + "/pids");
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    ASSERT_EQ(pids.size(), 3u);
    for (const pid_t pid : pids) EXPECT_EQ(kill(pid, 0), 0);
    if (start == 1) {
      ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
    } else {
      std::ofstream(work_ + "/fail") << "now";
    }
    ASSERT_TRUE(coordinator_->WaitForCount(IsEnded, start));
    for (const pid_t pid : pids) EXPECT_NE(kill(pid, 0), 0) << "start " << start << " leaves a process";
  }
}

// Commands are allowed only with a coordinator that other machines cannot reach, or with a token.
TEST(CommandsAllowedTest, OnlyOnLoopbackOrWithAToken) {
  for (const char* address : {"127.0.0.1:7411", "localhost:7411", "[::1]:7411"}) {
    EXPECT_TRUE(CheckCommandsAllowed(address, {}).ok()) << address;
  }
  for (const char* address : {"10.0.0.1:7411", "head:7411", "0.0.0.0:7411"}) {
    const absl::Status status = CheckCommandsAllowed(address, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(absl::StrCat("--allow-commands is refused with --coordinator ", address)),
                      HasSubstr("give --token-file")));
    EXPECT_TRUE(CheckCommandsAllowed(address, ClusterToken("0123456789abcdef")).ok()) << address;
  }
}

}  // namespace
}  // namespace hooke
