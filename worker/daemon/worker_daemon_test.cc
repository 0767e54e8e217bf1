// Tests a daemon in this process with a real mpirun and with fake_rank in place of hooke-rank. The coordinator is a
// fake that the test directs.

#include "worker/daemon/worker_daemon.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/null_sink.h"
#include "worker/daemon/fake_coordinator.h"
#include "worker/daemon/flags.h"
#include "worker/launch/find_program.h"
#include "worker/launch/lives.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Matches the message about a killed rank. MPICH's launcher kills the other ranks in the same way and does not say
// which died first. Then only the broken stream is known.
::testing::Matcher<std::string> IsKilled(pid_t pid) {
  const std::string who = absl::StrCat("rank 1 (pid ", pid, ") ");
  const std::string exit = "; mpirun exited with status ";
  const auto known = StartsWith(absl::StrCat(who, "ended by signal 9 (Killed)", exit));
  if (BuiltFlavour() == MpiFlavour::kOpenMpi) return known;
  return ::testing::AnyOf(known, StartsWith(absl::StrCat(who, "is gone without a word", exit)));
}

class WorkerDaemonTest : public ::testing::Test {
 protected:
  void SetUp() override { coordinator_ = std::make_unique<FakeCoordinator>(FakeCoordinator::Options()); }

  void TearDown() override {
    daemon_.reset();
    EXPECT_TRUE(!fs::exists(state_dir_ + "/groups") || fs::is_empty(state_dir_ + "/groups"));
    fs::remove_all(state_dir_);
  }

  WorkerOptions Options() const {
    WorkerOptions options;
    options.coordinator = coordinator_->address();
    options.name = "w1";
    options.slots = 4;
    options.state_dir = state_dir_;
    options.launch.flavour = BuiltFlavour();
    options.launch.mpirun = FindProgram(MpirunNames(BuiltFlavour()), "/usr/local/bin:/usr/bin:/bin");
    options.launch.rank_binary = fs::absolute("worker/daemon/fake_rank").string();
    options.launch.as_root = geteuid() == 0;
    options.launch.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/"};
    options.leave_within = leave_within_;
    options.stop_grace = absl::Milliseconds(500);
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    return options;
  }

  void StartDaemon() {
    absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(Options());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  // Starts a group of two ranks and waits until they run. Returns their process ids.
  std::vector<pid_t> StartRunning(const std::string& behaviour) {
    StartDaemon();
    EXPECT_TRUE(coordinator_->Send(StartCommand(behaviour, 2)));
    std::vector<pid_t> pids;
    for (uint32_t rank : {0, 1}) {
      EXPECT_TRUE(coordinator_->WaitFor(IsStep(rank, 1)).has_event());
      pids.push_back(coordinator_->WaitFor(IsHelloOf(rank)).event().report().event().hello().pid());
    }
    return pids;
  }

  v1::GroupEnded End() {
    const v1::WorkerMessage message = coordinator_->WaitFor(IsEnded);
    EXPECT_TRUE(message.has_event()) << "no end";
    return message.event().ended();
  }

  const std::string state_dir_ = ::testing::TempDir() + "/worker" + std::to_string(getpid());
  absl::Duration leave_within_ = absl::ZeroDuration();
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<WorkerDaemon> daemon_;
};

// A group starts, reports and ends well. Its events come in order, each once, with growing numbers.
TEST_F(WorkerDaemonTest, GroupRunsToItsEnd) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(StartCommand("done", 2)));
  const v1::GroupEnded end = End();
  EXPECT_TRUE(end.ok()) << end.message();
  uint64_t number = 0;
  int done = 0;
  for (const v1::WorkerMessage& message : coordinator_->received()) {
    if (!message.has_event()) continue;
    EXPECT_GT(message.event().number(), number);
    number = message.event().number();
    EXPECT_EQ(message.event().started().launcher_pid() > 0, number == 1);
    if (message.event().report().event().has_done()) ++done;
  }
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(coordinator_->WaitFor(IsStep(1, 1)).has_event());
}

// Starts a group of two ranks on a worker whose lease is a second and is not renewed. Each rank exchanges with each
// second one of these servers, and misses the first of them.
class CutOffWorkerTest : public WorkerDaemonTest {
 protected:
  void SetUp() override {
    FakeCoordinator::Options options;
    options.lease_ms = 1000;
    coordinator_ = std::make_unique<FakeCoordinator>(options);
  }

  void StartWith(const std::vector<std::string>& servers) {
    StartDaemon();
    v1::WorkerCommand command = StartCommand("cut off", 2);
    for (const std::string& server : servers) command.mutable_start()->mutable_group()->add_servers(server);
    ASSERT_TRUE(coordinator_->Send(command));
    ASSERT_TRUE(coordinator_->WaitFor(IsStep(0, 1)).has_event());
  }
};

// A group that reaches no server ends when its worker's lease does, because it may start elsewhere then. It says why.
TEST_F(CutOffWorkerTest, AGroupThatReachesNobodyEnds) {
  StartWith({"a:1", "b:1"});
  const v1::GroupEnded end = End();
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_THAT(end.message(), StartsWith("cut off: the coordinator has not answered this worker for "));
}

// A group that still reaches one of its servers trains on while the coordinator is away.
TEST_F(CutOffWorkerTest, AGroupThatReachesAServerGoesOn) {
  StartWith({"a:1", "b:1", "c:1"});
  EXPECT_TRUE(coordinator_->WaitFor(IsStep(0, 30)).has_event()) << "no step after three seconds";
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  EXPECT_THAT(End().message(), HasSubstr("enough"));
}

// Returns a command to start two ranks of a group of four, whose lead is another worker.
v1::WorkerCommand PartCommand() {
  v1::WorkerCommand command = StartCommand("done", 4);
  for (const uint32_t first : {0, 2}) {
    v1::GroupPart* part = command.mutable_start()->add_parts();
    part->set_worker(first == 0 ? "w0" : "w1");
    part->set_first_rank(first);
    part->set_ranks(2);
    part->set_address(first == 0 ? "10.0.0.1" : "10.0.0.2");
  }
  command.mutable_start()->set_part(1);
  return command;
}

bool IsReady(const v1::WorkerMessage& message) { return message.event().has_ready(); }

// A part of a group reports that it is ready, and starts nothing until it is told to. It can be stopped before that.
TEST_F(WorkerDaemonTest, PartWaitsForItsLaunch) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(PartCommand()));
  ASSERT_TRUE(coordinator_->WaitFor(IsReady).has_event());
  ASSERT_TRUE(coordinator_->Send(StopCommand("another part failed")));
  const v1::GroupEnded end = End();
  EXPECT_FALSE(end.ok());
  EXPECT_THAT(end.message(), HasSubstr("another part failed"));
  for (const v1::WorkerMessage& message : coordinator_->received()) EXPECT_FALSE(IsStarted(message));
}

// A coordinator that has started anew does not know which parts were ready, so a part that waits says it again.
TEST_F(WorkerDaemonTest, APartThatWaitsSaysAgainThatItIsReady) {
  WorkerOptions options = Options();
  options.ready_again = absl::Milliseconds(20);
  absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(std::move(options));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  ASSERT_TRUE(coordinator_->Send(PartCommand()));
  EXPECT_TRUE(coordinator_->WaitForCount(IsReady, 3));
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  EXPECT_THAT(End().message(), HasSubstr("enough"));
}

// Launching a part starts the MPI library's own daemon. If the daemon fails, the part fails, and the message names the
// program.
TEST_F(WorkerDaemonTest, PartWhoseDaemonFails) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(PartCommand()));
  ASSERT_TRUE(coordinator_->WaitFor(IsReady).has_event());
  v1::WorkerCommand launch;
  *launch.mutable_launch()->mutable_group() = coordinator_->WaitFor(IsReady).event().group();
  launch.mutable_launch()->add_arguments("--no-such-argument");
  ASSERT_TRUE(coordinator_->Send(launch));
  const v1::GroupEnded end = End();
  EXPECT_FALSE(end.ok());
  EXPECT_THAT(end.message(), HasSubstr(NodeDaemonName(BuiltFlavour()) + " exited with status"));
}

// SIGKILL of one rank ends the group. The message names the rank, its pid and the signal. The end has a code after
// which the coordinator tries again.
TEST_F(WorkerDaemonTest, KilledRank) {
  const std::vector<pid_t> pids = StartRunning("run");
  kill(pids[1], SIGKILL);
  const v1::GroupEnded end = End();
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(end.message(), IsKilled(pids[1]));
  EXPECT_FALSE(Lives(pids[0]));
}

// If a rank is stopped, a silence event names it within 10 s, with the time and step of its last report. Another event
// comes when the rank goes on. StopGroup kills a rank even while it is stopped.
TEST_F(WorkerDaemonTest, StoppedRank) {
  const std::vector<pid_t> pids = StartRunning("run");
  kill(pids[1], SIGSTOP);
  const absl::Time stopped = absl::Now();
  const v1::Silence silence = coordinator_->WaitFor(IsSilence(true)).event().silence().silence();
  EXPECT_LT(absl::Now() - stopped, absl::Seconds(10));
  EXPECT_EQ(silence.what(), absl::StrCat("rank 1 (pid ", pids[1], ")"));
  EXPECT_NEAR(silence.since_unix_ms(), absl::ToUnixMillis(stopped), 2000);
  EXPECT_GE(silence.step(), 1u);
  kill(pids[1], SIGCONT);
  EXPECT_TRUE(coordinator_->WaitFor(IsSilence(false)).has_event());
  kill(pids[1], SIGSTOP);
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  const v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_EQ(end.message(), "stopped: enough");
  for (pid_t pid : pids) EXPECT_FALSE(Lives(pid));
}

// A group that is to leave is not stopped: its ranks leave by themselves, and say so. Asking twice changes nothing.
TEST_F(WorkerDaemonTest, GroupLeaves) {
  leave_within_ = absl::Seconds(30);
  StartRunning("leave");
  ASSERT_TRUE(coordinator_->Send(LeaveCommand("drained")));
  ASSERT_TRUE(coordinator_->Send(LeaveCommand("drained again")));
  const v1::GroupEnded end = End();
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_THAT(end.message(), HasSubstr("): left: stopped: drained"));
}

// A worker that ends lets its groups leave, too.
TEST_F(WorkerDaemonTest, GroupsLeaveWhenTheWorkerEnds) {
  leave_within_ = absl::Seconds(30);
  StartRunning("leave");
  daemon_->LeaveAll();
  EXPECT_THAT(End().message(), HasSubstr("): left: its worker was shut down"));
  EXPECT_EQ(daemon_->StopAll(absl::Seconds(30)), absl::OkStatus());
  EXPECT_FALSE(daemon_->AnyRuns());
}

// Ranks that do not leave in time are stopped.
TEST_F(WorkerDaemonTest, GroupThatDoesNotLeaveIsStopped) {
  leave_within_ = absl::Milliseconds(300);
  const std::vector<pid_t> pids = StartRunning("run");
  ASSERT_TRUE(coordinator_->Send(LeaveCommand("drained")));
  const v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_EQ(end.message(), "stopped: drained; its ranks had not left within 300ms");
  for (pid_t pid : pids) EXPECT_FALSE(Lives(pid));
}

// A group that somebody stops while it is to leave ends at once.
TEST_F(WorkerDaemonTest, AStopDoesNotWaitForALeave) {
  leave_within_ = absl::Minutes(10);
  StartRunning("run");
  ASSERT_TRUE(coordinator_->Send(LeaveCommand("drained")));
  ASSERT_TRUE(coordinator_->Send(StopCommand("cancelled")));
  EXPECT_EQ(End().message(), "stopped: cancelled");
}

// A rank's own error becomes the group's, with its code. After the code in this test, the coordinator does not try
// again. The other ranks are stopped.
TEST_F(WorkerDaemonTest, FailedRank) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(StartCommand("fail", 2)));
  const v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(end.message(), StartsWith("rank 1 (pid "));
  EXPECT_THAT(end.message(), HasSubstr("): no file /data/train"));
}

// A launcher that is ending the group itself gets no signal, and is killed only if it takes too long. On SIGTERM Open
// MPI's launcher would crash at that moment, and its trace of 20 lines would hide the cause. Nor does it get a signal
// if somebody stops the group at that moment.
TEST_F(WorkerDaemonTest, LauncherDoesNotCrash) {
  StartDaemon();
  constexpr int kRuns = 20;
  for (int run = 1; run <= kRuns; ++run) {
    // One rank fails or all ranks fail, and half of the groups are also stopped meanwhile.
    ASSERT_TRUE(coordinator_->Send(StartCommand(run % 2 == 0 ? "fail" : "all fail", 2, run)));
    if (run % 4 >= 2) {
      ASSERT_TRUE(coordinator_->WaitForCount(HasLogLine("I give up"), (run + 1) / 2)) << run;
      ASSERT_TRUE(coordinator_->Send(StopCommand("enough", run)));
    }
    ASSERT_TRUE(coordinator_->WaitForCount(IsEnded, run)) << run;
  }
  for (const v1::WorkerMessage& message : coordinator_->received()) {
    for (const std::string& line : message.log().lines()) {
      EXPECT_THAT(line, ::testing::Not(HasSubstr("Segmentation fault")));
      EXPECT_THAT(line, ::testing::Not(HasSubstr("Process received signal")));
      EXPECT_THAT(line, ::testing::Not(HasSubstr("abort is already in progress")));
    }
  }
}

// If a rank exits without a report, the message has its exit status and the last line of its output.
TEST_F(WorkerDaemonTest, ExitedRank) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(StartCommand("exit3", 2)));
  const v1::GroupEnded end = End();
  EXPECT_EQ(end.code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(end.message(), StartsWith("rank 1 (pid "));
  EXPECT_THAT(end.message(), HasSubstr("; last line of output: cannot go on"));
  // MPICH's launcher waits for the other ranks until the daemon stops them.
  if (BuiltFlavour() == MpiFlavour::kMpich) return;
  EXPECT_THAT(end.message(), HasSubstr(") exited with status 3; mpirun exited with status 3"));
}

// The group goes on while the coordinator is away. The group is named in the hello to the restarted coordinator, which
// then gets the newest progress and can stop the group.
TEST_F(WorkerDaemonTest, CoordinatorRestarts) {
  const std::vector<pid_t> pids = StartRunning("run");
  FakeCoordinator::Options options;
  options.port = coordinator_->port();
  coordinator_.reset();
  coordinator_ = std::make_unique<FakeCoordinator>(options);
  const v1::WorkerMessage hello =
      coordinator_->WaitFor([](const v1::WorkerMessage& message) { return message.has_hello(); });
  ASSERT_EQ(hello.hello().running_size(), 1);
  EXPECT_EQ(hello.hello().running(0).job_id(), "test-1");
  EXPECT_EQ(hello.hello().running(0).incarnation(), 1u);
  EXPECT_TRUE(coordinator_->WaitFor(IsStep(0, 2)).has_event());
  for (pid_t pid : pids) EXPECT_TRUE(Lives(pid));
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  EXPECT_EQ(End().message(), "stopped: enough");
}

// If a group ends while the coordinator is away, its end is sent when the coordinator is back.
TEST_F(WorkerDaemonTest, EndIsDeliveredLater) {
  const std::vector<pid_t> pids = StartRunning("run");
  FakeCoordinator::Options options;
  options.port = coordinator_->port();
  coordinator_.reset();
  kill(pids[0], SIGKILL);
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!fs::is_empty(state_dir_ + "/groups") && absl::Now() < limit) sched_yield();
  coordinator_ = std::make_unique<FakeCoordinator>(options);
  const auto names_killed = StartsWith(absl::StrCat("rank 0 (pid ", pids[0], ") "));
  if (BuiltFlavour() == MpiFlavour::kOpenMpi) {
    EXPECT_THAT(End().message(), names_killed);
  } else {  // MPICH's mpirun kills the other rank at once, and the daemon may hear of that one first.
    EXPECT_THAT(End().message(),
                ::testing::AnyOf(names_killed, StartsWith(absl::StrCat("rank 1 (pid ", pids[1], ") "))));
  }
}

// StopGroup ends all processes of the group: a child of a rank that took a session of its own dies too.
TEST_F(WorkerDaemonTest, ChildrenOfRanksDie) {
  const std::vector<pid_t> pids = StartRunning("children");
  const v1::WorkerMessage message = coordinator_->WaitFor(HasLogLine("group 0 rank 0: child "));
  ASSERT_TRUE(message.has_log());
  pid_t child = 0;
  for (const std::string& line : message.log().lines()) {
    const bool says_child = absl::StartsWith(line, "group 0 rank 0: child ");
    ASSERT_EQ(says_child && absl::SimpleAtoi(line.substr(22), &child), says_child);
  }
  EXPECT_TRUE(Lives(child));
  ASSERT_TRUE(coordinator_->Send(StopCommand("enough")));
  End();
  EXPECT_FALSE(Lives(child));
}

// The ranks' output arrives before the group's end, with the name of the rank that wrote it, whatever its bytes are.
TEST_F(WorkerDaemonTest, LogIsForwarded) {
  StartDaemon();
  ASSERT_TRUE(coordinator_->Send(StartCommand("talk", 2)));
  EXPECT_TRUE(coordinator_->WaitFor(HasLogLine("group 0 rank 1: hello ? from one")).has_log());
  EXPECT_TRUE(End().ok());
}

// The same command twice starts one group. A command with a higher incarnation replaces the older group.
TEST_F(WorkerDaemonTest, RepeatedAndReplaced) {
  const std::vector<pid_t> pids = StartRunning("run");
  ASSERT_TRUE(coordinator_->Send(StartCommand("run", 2)));
  ASSERT_TRUE(coordinator_->Send(StartCommand("done", 2, 2)));
  EXPECT_TRUE(coordinator_->WaitForCount(IsEnded, 2));
  int started = 0;
  for (const v1::WorkerMessage& message : coordinator_->received()) {
    if (IsStarted(message)) ++started;
    if (!IsEnded(message)) continue;
    const bool first = message.event().group().incarnation() == 1;
    EXPECT_EQ(message.event().ended().message(), first ? "replaced by start 2" : "all ranks are done");
  }
  EXPECT_EQ(started, 2);
  for (pid_t pid : pids) EXPECT_FALSE(Lives(pid));
}

// Wrong commands are refused with a reason, and start nothing. A command to stop a group that never ran has no effect.
TEST_F(WorkerDaemonTest, BadCommands) {
  StartDaemon();
  v1::WorkerCommand command = StartCommand("run", 2);
  command.mutable_start()->mutable_group()->set_job_id("../../etc");
  ASSERT_TRUE(coordinator_->Send(command));
  EXPECT_THAT(End().message(), HasSubstr("a job id must be 1 to 80 of [a-z0-9-]"));
  ASSERT_TRUE(coordinator_->Send(StartCommand("run", 5)));
  ASSERT_TRUE(coordinator_->Send(StartCommand("run", 0, 2)));
  ASSERT_TRUE(coordinator_->Send(StopCommand("never started", 3)));
  EXPECT_TRUE(coordinator_->WaitForCount(IsEnded, 3));
  for (const v1::WorkerMessage& message : coordinator_->received()) EXPECT_FALSE(message.event().has_started());
}

// Two daemons in one process have groups of their own. When one daemon ends, the other's group goes on.
TEST_F(WorkerDaemonTest, TwoInOneProcess) {
  FakeCoordinator other({});
  WorkerOptions options = Options();
  options.coordinator = other.address();
  options.state_dir += "-other";
  absl::StatusOr<std::unique_ptr<WorkerDaemon>> second = WorkerDaemon::Start(options);
  ASSERT_TRUE(second.ok()) << second.status();
  const std::vector<pid_t> pids = StartRunning("run");
  ASSERT_TRUE(other.Send(StartCommand("run", 1)));
  const pid_t pid = other.WaitFor(IsHelloOf(0)).event().report().event().hello().pid();
  EXPECT_TRUE(Lives(pid));
  second->reset();
  EXPECT_FALSE(Lives(pid));
  EXPECT_EQ(other.WaitFor(IsEnded).event().ended().message(), "its worker was shut down");
  for (pid_t mine : pids) EXPECT_TRUE(Lives(mine));
  fs::remove_all(options.state_dir);
}

// Wrong options are refused, with the reason, before anything starts.
TEST_F(WorkerDaemonTest, BadOptions) {
  const auto start = [](const WorkerOptions& options) { return WorkerDaemon::Start(options).status(); };
  WorkerOptions options = Options();
  options.slots = 0;
  EXPECT_EQ(start(options).message(), "--slots must be 1 to 4096, got 0");
  options = Options();
  options.launch.rank_binary = "/no/hooke-rank";
  EXPECT_EQ(start(options).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(start(options).message(), "there is no program /no/hooke-rank: name it with --rank-binary");
  options = Options();
  options.name = "a b";
  EXPECT_THAT(std::string(start(options).message()), HasSubstr("--name must be 1 to 63 letters"));
  options = Options();
  options.coordinator = "host";
  EXPECT_EQ(start(options).message(), "--coordinator: \"host\" is no address, allowed is HOST:PORT or [IPv6]:PORT");
  options = Options();
  options.exchange_timeout = absl::Nanoseconds(1);
  EXPECT_EQ(start(options).message(), "--collective-timeout and --exchange-timeout must be from 1ms to 24h");
}

}  // namespace
}  // namespace hooke
