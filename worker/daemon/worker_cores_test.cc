// Tests that a daemon binds the ranks of its groups to cores, with a real mpirun and ranks that say where they run. The
// coordinator is a fake that the test directs.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/null_sink.h"
#include "worker/cores/machine_cores.h"
#include "worker/daemon/fake_coordinator.h"
#include "worker/daemon/flags.h"
#include "worker/daemon/worker_daemon.h"
#include "worker/launch/find_program.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;

// Returns a machine on which each CPU of this one is a core.
std::vector<Core> EachCpuIsACore() {
  std::vector<Core> cores;
  for (const int cpu : OwnCpus()) cores.push_back({0, {cpu}});
  return cores;
}

class WorkerCoresTest : public ::testing::Test {
 protected:
  void TearDown() override {
    daemon_.reset();
    fs::remove_all(state_dir_);
    fs::remove(state_dir_ + ".cores");
  }

  void StartDaemon(uint32_t slots, std::vector<Core> cores) {
    WorkerOptions options;
    options.coordinator = coordinator_.address();
    options.name = "w1";
    options.slots = slots;
    options.state_dir = state_dir_;
    options.allow_commands = true;
    options.cores = std::move(cores);
    options.cores_file = state_dir_ + ".cores";
    options.launch.flavour = BuiltFlavour();
    options.launch.mpirun = FindProgram(MpirunNames(BuiltFlavour()), "/usr/local/bin:/usr/bin:/bin");
    options.launch.rank_binary = fs::absolute("worker/daemon/fake_rank").string();
    options.launch.threads_per_rank = 77;
    options.launch.as_root = geteuid() == 0;
    options.launch.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/"};
    options.stop_grace = absl::Milliseconds(500);
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(std::move(options));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  v1::WorkerCommand Group(uint32_t group, uint32_t ranks) {
    v1::WorkerCommand command = StartCommand("cores", ranks);
    command.mutable_start()->mutable_group()->set_group(group);
    return command;
  }

  // Returns the rest of the first line of the job's log that begins so. Waits for it.
  std::string Logged(const std::string& begin) {
    const v1::WorkerMessage message = coordinator_.WaitFor(HasLogLine(begin));
    for (absl::string_view line : message.log().lines()) {
      if (absl::ConsumePrefix(&line, begin)) return std::string(line);
    }
    return "no such line";
  }

  const std::string state_dir_ = absl::StrCat(::testing::TempDir(), "/worker", getpid());
  FakeCoordinator coordinator_{FakeCoordinator::Options()};
  std::unique_ptr<WorkerDaemon> daemon_;
};

// All threads of a rank run on the cores that the log names. Groups that run at the same time have different ones. A
// group that starts after another's end gets the cores of that one.
TEST_F(WorkerCoresTest, GroupsHaveDifferentCores) {
  const std::vector<Core> cores = EachCpuIsACore();
  if (cores.size() < 2) GTEST_SKIP() << "needs two CPUs";
  StartDaemon(cores.size(), cores);
  ASSERT_TRUE(coordinator_.Send(Group(0, 1)));
  EXPECT_EQ(Logged("group 0 rank 0: runs on "), CpuList(cores[0].cpus));
  EXPECT_EQ(Logged("group 0 worker: "),
            absl::StrCat("each rank on w1 has 1 core: rank 0 CPU ", CpuList(cores[0].cpus)));
  ASSERT_TRUE(coordinator_.Send(Group(1, 1)));
  EXPECT_EQ(Logged("group 1 rank 0: runs on "), CpuList(cores[1].cpus));
  ASSERT_TRUE(coordinator_.Send(StopCommand("enough")));
  ASSERT_TRUE(coordinator_.WaitForCount(IsEnded, 1));
  ASSERT_TRUE(coordinator_.Send(Group(2, 1)));
  EXPECT_EQ(Logged("group 2 rank 0: runs on "), CpuList(cores[0].cpus));
}

// Each rank of a command is bound before its program starts, and is told the number of its hardware threads.
TEST_F(WorkerCoresTest, RanksOfACommand) {
  const std::vector<Core> cores = EachCpuIsACore();
  if (cores.size() < 2) GTEST_SKIP() << "needs two CPUs";
  StartDaemon(2, {cores[0], cores[1]});
  v1::WorkerCommand command = Group(0, 2);
  v1::CommandSpec& spec = *command.mutable_start()->mutable_group()->mutable_job()->mutable_command();
  for (const char* word : {"sh", "-c", "echo $(grep Cpus_allowed_list /proc/self/status) $OMP_NUM_THREADS"}) {
    spec.add_arguments(word);
  }
  spec.set_directory("/");
  ASSERT_TRUE(coordinator_.Send(command));
  for (const int rank : {0, 1}) {
    EXPECT_EQ(Logged(absl::StrCat("group 0 rank ", rank, ": ")),
              absl::StrCat("Cpus_allowed_list: ", CpuList(cores[rank].cpus), " 1"));
  }
  EXPECT_TRUE(coordinator_.WaitFor(IsEnded).event().ended().ok());
}

// With more slots than hardware threads, ranks run on all CPUs of the daemon, and the log says why.
TEST_F(WorkerCoresTest, MoreSlotsThanHardwareThreads) {
  StartDaemon(2, {{0, {OwnCpus()[0]}}});
  ASSERT_TRUE(coordinator_.Send(Group(0, 2)));
  EXPECT_EQ(Logged("group 0 rank 1: runs on "), CpuList(OwnCpus()));
  EXPECT_EQ(Logged("group 0 worker: "),
            "ranks on w1 are not bound to cores: it has 2 slots, but only 1 hardware thread");
}

// A rank whose cores have been taken away since the daemon started runs all the same, and the job's log says so.
TEST_F(WorkerCoresTest, CoresThatAreGone) {
  StartDaemon(1, {{0, {65535}}});
  ASSERT_TRUE(coordinator_.Send(Group(0, 1)));
  EXPECT_EQ(Logged("group 0 rank 0: runs on "), CpuList(OwnCpus()));
  EXPECT_THAT(Logged("group 0 rank 0: this rank could not be bound to "), StartsWith("its cores"));
}

}  // namespace
}  // namespace hooke
