// Tests the program hooke-worker as a process: its flags, its exit statuses, and that it leaves nothing behind.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/cores/choose_cores.h"
#include "worker/cores/machine_cores.h"
#include "worker/daemon/fake_coordinator.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/lives.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HookeWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }

  void TearDown() override {
    for (pid_t pid : ranks_) kill(pid, SIGKILL);
    if (pid_ > 0) Kill(SIGKILL);
    fs::remove_all(folder_);
  }

  // Starts the program; its output goes to a file.
  void Start(std::vector<std::string> flags, std::string variable = "A=b") {
    flags.insert(flags.begin(), fs::absolute("worker/daemon/hooke-worker").string());
    std::vector<char*> argv;
    argv.reserve(flags.size() + 1);
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    std::string home = "HOME=" + folder_;
    std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
    char* environment[] = {home.data(), path.data(), variable.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    ASSERT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void StartWith(FakeCoordinator& coordinator, const std::string& bind = "cores",
                 const std::string& leave_within = "0s") {
    Start({"--coordinator", coordinator.address(), "--name", "w1", "--slots", "2", "--ready-file", folder_ + "/ready",
           "--rank-binary", fs::absolute("worker/daemon/fake_rank").string(), "--bind", bind, "--leave-within",
           leave_within});
  }

  void StartGroup(FakeCoordinator& coordinator, const std::string& behaviour = "run") {
    ASSERT_TRUE(coordinator.Send(StartCommand(behaviour, 2)));
    for (uint32_t rank : {0, 1}) {
      ranks_.push_back(coordinator.WaitFor(IsHelloOf(rank)).event().report().event().hello().pid());
      ASSERT_TRUE(Lives(ranks_.back()));
    }
  }

  // Waits at most 20 s for the end. Returns the exit status, or minus the signal that ended it.
  int Wait() {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (absl::Now() > limit) return -1000;
      sched_yield();
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int Kill(int signal) {
    kill(pid_, signal);
    return Wait();
  }

  std::string Output() const {
    std::ifstream file(output_);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  const std::string folder_ = ::testing::TempDir() + "/hw" + std::to_string(getpid());
  const std::string output_ = folder_ + "/output";
  pid_t pid_ = 0;
  std::vector<pid_t> ranks_;
};

// When a daemon is killed by SIGKILL, its groups die too. The next daemon on that folder removes the remains.
TEST_F(HookeWorkerTest, KilledDaemonLeavesNoProcess) {
  FakeCoordinator coordinator({});
  StartWith(coordinator);
  StartGroup(coordinator);
  EXPECT_EQ(Kill(SIGKILL), -SIGKILL);
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  for (pid_t rank : ranks_) {
    while (Lives(rank) && absl::Now() < limit) sched_yield();
    EXPECT_FALSE(Lives(rank));
  }
  const std::string left = folder_ + "/.hooke/worker/groups/test-1-0-1";
  const std::string memory = fs::read_symlink(left + "/memory").string();
  EXPECT_TRUE(fs::exists(memory));
  StartWith(coordinator);
  EXPECT_TRUE(coordinator.WaitForCount([](const v1::WorkerMessage& message) { return message.has_hello(); }, 2));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(memory));
  EXPECT_EQ(Kill(SIGTERM), 0);
}

// With time to leave, groups are not stopped on SIGTERM.
TEST_F(HookeWorkerTest, SigtermLetsGroupsLeave) {
  FakeCoordinator coordinator({});
  StartWith(coordinator, "cores", "15s");
  StartGroup(coordinator, "leave");
  EXPECT_EQ(Kill(SIGTERM), 0) << Output();
  EXPECT_THAT(coordinator.WaitFor(IsEnded).event().ended().message(), HasSubstr("left: its worker was shut down"));
}

// On SIGTERM the daemon stops all groups, sends their ends to the coordinator and exits with status 0. It wrote the
// ready file at the welcome.
TEST_F(HookeWorkerTest, SigtermStopsEverything) {
  FakeCoordinator coordinator({});
  StartWith(coordinator);
  StartGroup(coordinator);
  EXPECT_TRUE(fs::exists(folder_ + "/ready"));
  EXPECT_EQ(Kill(SIGTERM), 0) << Output();
  for (pid_t rank : ranks_) EXPECT_FALSE(Lives(rank));
  EXPECT_EQ(coordinator.WaitFor(IsEnded).event().ended().message(), "its worker was shut down");
  EXPECT_TRUE(fs::is_empty(folder_ + "/.hooke/worker/groups"));
}

// By default each rank has cores of its own, and the job's log says which. With --bind=none ranks run on all cores, and
// the log says nothing about them.
TEST_F(HookeWorkerTest, Bind) {
  for (const std::string& bind : {std::string("cores"), std::string("none")}) {
    FakeCoordinator coordinator({});
    StartWith(coordinator, bind);
    ASSERT_TRUE(coordinator.Send(StartCommand("cores", 1)));
    const v1::WorkerMessage message = coordinator.WaitFor(HasLogLine("group 0 rank 0: runs on "));
    ASSERT_TRUE(message.has_log());
    bool says = false;
    for (const v1::WorkerMessage& m : coordinator.received()) {
      // Workers of other tests may have the cores; then it says why the rank is not bound.
      says = says || HasLogLine("rank on w1 has ")(m) || HasLogLine("ranks on w1 are not bound to cores")(m);
    }
    EXPECT_EQ(says, bind == "cores");
    EXPECT_TRUE(bind != "none" || HasLogLine("runs on " + CpuList(OwnCpus()))(message));
    EXPECT_THAT(Output(), HasSubstr(" bind=" + bind));
    EXPECT_EQ(Kill(SIGTERM), 0);
  }
}

// A worker that starts before the network is there waits for it, and can be ended. No name server is asked for a name
// with an empty part.
TEST_F(HookeWorkerTest, WaitsForTheNetwork) {
  Start({"--coordinator", "no..name:7411", "--rank-binary", fs::absolute("worker/daemon/fake_rank").string()});
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (Output().find("waiting") == std::string::npos && absl::Now() < limit) sched_yield();
  EXPECT_THAT(Output(),
              HasSubstr("no network leads to --coordinator no..name:7411, or its name is not known: waiting"));
  EXPECT_TRUE(Lives(pid_));
  EXPECT_EQ(Kill(SIGTERM), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("Terminated: stopped"));
}

// A worker that ends when it is idle, such as that of a batch job, does not wait longer for the network.
TEST_F(HookeWorkerTest, DoesNotWaitForTheNetworkForEver) {
  Start({"--coordinator", "no..name:7411", "--rank-binary", fs::absolute("worker/daemon/fake_rank").string(),
         "--exit-idle", "1s"});
  EXPECT_EQ(Wait(), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("no network has led to the coordinator for 1s (--exit-idle)"));
}

// Workers whose MPI libraries have different versions run no group together, so each says its own, as mpirun tells it.
TEST_F(HookeWorkerTest, SaysTheVersionOfItsMpi) {
  FakeCoordinator coordinator({});
  StartWith(coordinator);
  const v1::WorkerMessage hello =
      coordinator.WaitFor([](const v1::WorkerMessage& message) { return message.has_hello(); });
  EXPECT_THAT(hello.hello().mpi(), ::testing::MatchesRegex("(openmpi|mpich) [0-9]+\\.[0-9]+"));
  EXPECT_EQ(Kill(SIGTERM), 0);
}

// Ranks do not start under the mpirun of another library, so a worker with such a one does not start either. A library
// without its program for other nodes runs groups of this node only.
TEST_F(HookeWorkerTest, SaysWhatIsWrongWithItsMpirun) {
  FakeCoordinator coordinator({});
  const std::string mpirun = folder_ + "/mpirun";
  const std::string open = "mpirun (Open MPI) 4.1.4";
  const std::string mpich = "HYDRA build details: Version: 4.0.2";
  const bool is_open = BuiltFlavour() == MpiFlavour::kOpenMpi;
  const auto start = [&](const std::string& said) {
    std::ofstream(mpirun) << "#!/bin/sh\necho '" << said << "'\n";
    fs::permissions(mpirun, fs::perms::owner_all);
    const std::string rank = fs::absolute("worker/daemon/fake_rank").string();
    Start({"--coordinator", coordinator.address(), "--rank-binary", rank, "--mpirun", mpirun, "--interface", "lo"});
  };
  start(is_open ? mpich : open);
  EXPECT_EQ(Wait(), 2);
  EXPECT_THAT(Output(), ::testing::ContainsRegex("hooke-rank is linked with .*, but /.*/mpirun is of "));
  start(is_open ? open : mpich);
  EXPECT_TRUE(coordinator.WaitFor([](const v1::WorkerMessage& message) { return message.has_hello(); }).has_hello());
  EXPECT_EQ(Kill(SIGTERM), 0);
  EXPECT_THAT(Output(), ::testing::ContainsRegex("there is no program /.*/" + NodeDaemonName(BuiltFlavour())));
}

// HOOKE_TOKEN_FILE names the token file as --token-file does. The worker makes the path absolute, because batch jobs
// get it.
TEST_F(HookeWorkerTest, TokenFileOfTheEnvironment) {
  Start({}, "HOOKE_TOKEN_FILE=no-such-token");
  EXPECT_EQ(Wait(), 1);
  const std::string path = (fs::current_path() / "no-such-token").string();
  EXPECT_THAT(Output(), ::testing::AllOf(HasSubstr(" token-file=" + path + " "),
                                         HasSubstr("the token file " + path + " does not exist")));
}

// --describe prints what the worker would use and ends, without a coordinator and without a folder.
TEST_F(HookeWorkerTest, Describe) {
  Start({"--describe", "--slots", "3", "--mpirun", "/opt/mpirun"});
  EXPECT_EQ(Wait(), 0) << Output();
  EXPECT_THAT(
      Output(),
      ::testing::MatchesRegex(
          "version [0-9.]+\nslots 3\nthreads-per-rank [0-9]+\ngpus [^\n]*\nmpi (openmpi|mpich)\nmpirun /opt/mpirun\n"
          "rank-binary /.*/hooke-rank\naddress \ninterface \n(own-address .*\n)*"));
  EXPECT_FALSE(fs::exists(folder_ + "/.hooke"));
  Start({"--describe", "--interface", "nope0"});
  EXPECT_EQ(Wait(), 2);
  EXPECT_THAT(Output(), HasSubstr("--interface nope0: no such interface"));
}

// A worker divides the GPUs that a batch system has given it, and has a slot for each.
TEST_F(HookeWorkerTest, GpusOfTheEnvironment) {
  const std::string given = "CUDA_VISIBLE_DEVICES=2,5";
  Start({"--describe"}, given);
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Output(), ::testing::AllOf(HasSubstr("\nslots 2\n"), HasSubstr("\ngpus 2,5\n")));
  Start({"--describe", "--slots", "4", "--gpus", "GPU-a"}, given);
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Output(), ::testing::AllOf(HasSubstr("\nslots 4\n"), HasSubstr("\ngpus GPU-a\n")));
  Start({"--describe", "--gpus", "none"}, given);
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Output(), ::testing::AllOf(HasSubstr(absl::StrCat("\nslots ", ReadCores(OwnCpus()).size(), "\n")),
                                         HasSubstr("\ngpus \n")));
}

// Slurm may give only some CPUs of a node, but let a job see all. The ranks share those that it gives.
TEST_F(HookeWorkerTest, CpusOfTheBatchSystem) {
  Start({"--describe", "--slots", "1"}, "SLURM_CPUS_ON_NODE=1");
  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Output(), HasSubstr("\nslots 1\nthreads-per-rank 1\n"));
  for (const std::string more : {"SLURM_CPUS_ON_NODE=100000", "SLURM_CPUS_ON_NODE=x"}) {
    Start({"--describe", "--slots", "1"}, more);
    EXPECT_EQ(Wait(), 0);
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat("\nthreads-per-rank ", OwnCpus().size(), "\n"))) << more;
  }
}

// Without --slots, a worker without GPUs has a slot for each core on which it may run.
TEST_F(HookeWorkerTest, DefaultSlots) {
  FakeCoordinator coordinator({});
  Start({"--coordinator", coordinator.address(), "--gpus", "none", "--rank-binary",
         fs::absolute("worker/daemon/fake_rank").string()});
  const v1::WorkerMessage hello = coordinator.WaitFor([](const v1::WorkerMessage& m) { return m.has_hello(); });
  EXPECT_EQ(hello.hello().slots(), ReadCores(OwnCpus()).size());
  EXPECT_EQ(Kill(SIGTERM), 0);
}

// Without a coordinator the daemon keeps trying to connect, and SIGINT ends it.
TEST_F(HookeWorkerTest, NoCoordinator) {
  std::string address;
  { address = FakeCoordinator({}).address(); }
  Start({"--coordinator", address, "--rank-binary", fs::absolute("worker/daemon/fake_rank").string()});
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (Output().find("trying again in") == std::string::npos && absl::Now() < limit) sched_yield();
  EXPECT_THAT(Output(), HasSubstr(address));
  EXPECT_EQ(Kill(SIGINT), 0) << Output();
}

// If another worker has the same name, the exit status is 1 and the error says what to do.
TEST_F(HookeWorkerTest, NameIsTaken) {
  FakeCoordinator::Options options;
  options.refuse = grpc::Status(grpc::ALREADY_EXISTS, "");
  FakeCoordinator coordinator(options);
  StartWith(coordinator);
  EXPECT_EQ(Wait(), 1);
  EXPECT_THAT(Output(), HasSubstr("a worker named w1 is already connected: choose another --name"));
}

// Bad command lines end with exit status 2, or 1 for a missing program, and the message says what is allowed. --version
// and --help end with 0.
TEST_F(HookeWorkerTest, BadFlags) {
  struct Case {
    std::vector<std::string> flags;
    int status;
    const char* says;
  };
  const Case cases[] = {
      {{"--no-such-flag"}, 2, "--no-such-flag"},
      {{"--slots", "0"}, 2, "must be auto, or 1 to 4096, got 0"},
      {{"--slots", "-1"}, 2, "must be auto, or 1 to 4096, got -1"},
      {{"--slots=many"}, 2, "must be auto, or 1 to 4096, got many"},
      {{"--gpus", "0,x"}, 2, "names no GPU: \"x\"; give auto, none, or a list like 0,1"},
      {{"--gpus", "1,1"}, 2, "names GPU 1 twice"},
      {{"--collective-timeout", "0s"}, 2, "must be a duration from 1ms to 24h"},
      {{"--exchange-timeout", "5"}, 2, "must be a duration from 1ms to 24h"},
      {{"--exchange-timeout", "1ns"}, 2, "must be a duration from 1ms to 24h, like 30s or 1m30s, got 1ns"},
      {{"--collective-timeout", "25h"}, 2, "must be a duration from 1ms to 24h, like 30s or 1m30s, got 25h"},
      {{"--coordinator", "host:"}, 2, "--coordinator: \"host:\" is no address, allowed is HOST:PORT or [IPv6]:PORT"},
      {{"--coordinator", "host:0"},
       2,
       "--coordinator: \"host:0\" has port 0, at which nobody can be reached, allowed is 1 to 65535"},
      {{"--leave-within", "-1s"}, 2, "must be a duration from 0s to 24h, like 10s, got -1s"},
      {{"--log-level", "loud"}, 2, "loud"},
      {{"--bind", "sockets"}, 2, "sockets"},
      {{"--name", "a/b"}, 2, "--name must be 1 to 63 letters"},
      {{"--rank-binary", "/no/hooke-rank"}, 1, "there is no program /no/hooke-rank: name it with --rank-binary"},
      {{"--version"}, 0, "hooke-worker "},
      {{"--help"}, 0, "--state-dir"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.says);
    Start(c.flags);
    EXPECT_EQ(Wait(), c.status);
    EXPECT_THAT(Output(), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace hooke
