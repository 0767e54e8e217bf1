// Tests `hooke up` with shell scripts in place of the daemons. Each script writes its ready file and waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "client/local_cluster/cluster_folder.h"
#include "client/process/run_program.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A script that stands for a daemon. It prints its arguments, writes its pid to a file, becomes ready with a made-up
// address, and ends at SIGTERM.
constexpr char kDaemon[] = R"sh(#!/bin/sh
echo "started with $*"
while [ $# -gt 0 ]; do
  case $1 in
    --ready-file) ready=$2 ;;
    --state-dir) state=$2 ;;
  esac
  shift
done
echo $$ > "$state/pid"
trap 'echo stopped > "$state/stopped"; exit 0' TERM
echo "127.0.0.1:$((20000 + $$ % 10000))" > "$ready.new" && mv "$ready.new" "$ready"
while :; do sleep 0.05; done
)sh";

class UpTest : public ::testing::Test {
 protected:
  UpTest() {
    fs::create_directories(programs_);
    for (const char* program : {"hooke-server", "hooke-worker"}) WriteProgram(program, kDaemon);
  }
  ~UpTest() override { fs::remove_all(folder_); }

  void WriteProgram(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(programs_) / name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }

  ProgramOptions Up(const std::vector<std::string>& more = {}) {
    ProgramOptions options;
    options.arguments = {"client/hooke", "up", "--programs-dir", programs_};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.environment = {"HOME=" + folder_, "PATH=/usr/bin:/bin"};
    return options;
  }

  pid_t PidOf(const std::string& daemon) {
    std::ifstream in(state_ + "/" + daemon + "/pid");
    pid_t pid = 0;
    in >> pid;
    return pid;
  }

  // Returns whether the process is gone within seconds. A killed process exists until its parent has waited for it, so
  // this function polls.
  static bool IsGoneSoon(pid_t pid) {
    for (int i = 0; i < 500; ++i) {
      if (kill(pid, 0) != 0 && errno == ESRCH) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  std::string LogOf(const std::string& daemon) {
    std::ifstream in(state_ + "/logs/" + daemon + ".log");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "up_test");
  const std::string programs_ = folder_ + "/bin";
  const std::string state_ = folder_ + "/.hooke/up";
};

// `up` gives its token file to all daemons. It refuses a token file that others can read.
TEST_F(UpTest, PassesTheTokenFileOn) {
  const std::string file = folder_ + "/token";
  std::ofstream(file) << "0123456789abcdef\n";
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  {
    Program up(Up({"--token-file", file}));
    ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20))) << up.Wait(absl::ZeroDuration()).err;
    for (const char* daemon : {"server-1", "server-2", "worker-1", "worker-2"}) {
      EXPECT_THAT(LogOf(daemon), HasSubstr(" --token-file " + file));
    }
    up.Signal(SIGINT);
    EXPECT_THAT(up.Wait().out, HasSubstr("hooke jobs --token-file " + file));
  }
  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  const ProgramOutcome refused = Program(Up({"--token-file", file})).Wait();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is open to others than its owner"));
}

// With --metrics each daemon is told to serve them. `up` prints where, and writes a file that Prometheus reads. The
// next `up` without the flag removes that file.
TEST_F(UpTest, TellsWhereMetricsAre) {
  const std::string with_metrics = absl::StrReplaceAll(
      kDaemon, {{"> \"$ready.new\" &&",
                 "> \"$ready.new\" && echo \"metrics 127.0.0.1:$(basename $state)\" >> \"$ready.new\" &&"}});
  for (const char* program : {"hooke-server", "hooke-worker"}) WriteProgram(program, with_metrics);
  const std::string targets = state_ + "/metrics.json";
  {
    Program up(Up({"--metrics", "--servers", "1", "--workers", "1"}));
    ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20))) << up.Wait(absl::ZeroDuration()).err;
    EXPECT_THAT(LogOf("server-1"), HasSubstr(" --metrics 127.0.0.1:0"));
    EXPECT_THAT(LogOf("worker-1"), HasSubstr(" --metrics 127.0.0.1:0"));
    std::stringstream text;
    text << std::ifstream(targets).rdbuf();
    EXPECT_EQ(text.str(),
              "[{\"targets\": [\"127.0.0.1:server-1\"], \"labels\": {\"daemon\": \"server-1\"}},\n"
              " {\"targets\": [\"127.0.0.1:worker-1\"], \"labels\": {\"daemon\": \"worker-1\"}}]\n");
    up.Signal(SIGINT);
    EXPECT_THAT(up.Wait().out, HasSubstr("metrics      http://127.0.0.1:server-1/metrics (server-1)\n"
                                         "             http://127.0.0.1:worker-1/metrics (worker-1)\n"
                                         "             for Prometheus: " +
                                         targets + "\n"));
  }
  Program up(Up({"--servers", "1", "--workers", "1"}));
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
  EXPECT_FALSE(fs::exists(targets));
}

// The coordinator alone is told to serve its web page, at the address of the flag. `up` prints where it is.
TEST_F(UpTest, TellsWhereTheDashboardIs) {
  const std::string with_page = absl::StrReplaceAll(
      kDaemon, {{"> \"$ready.new\" &&", "> \"$ready.new\" && echo \"dashboard 127.0.0.1:7480\" >> \"$ready.new\" &&"}});
  WriteProgram("hooke-server", with_page);
  Program up(Up({"--dashboard", "127.0.0.1:7480", "--servers", "2", "--workers", "1"}));
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20))) << up.Wait(absl::ZeroDuration()).err;
  EXPECT_THAT(LogOf("server-1"), HasSubstr(" --dashboard 127.0.0.1:7480"));
  EXPECT_THAT(LogOf("server-2"), ::testing::Not(HasSubstr("--dashboard")));
  up.Signal(SIGINT);
  EXPECT_THAT(up.Wait().out, HasSubstr("dashboard    http://127.0.0.1:7480/\n"));
}

// A whole cluster starts with the given flags and prints its address. Ctrl-C stops all its daemons.
TEST_F(UpTest, StartsAndStops) {
  Program up(Up({"--slots", "3"}));
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20))) << up.Wait(absl::ZeroDuration()).err;
  const std::optional<std::string> coordinator = RunningClusterAddress(state_);
  ASSERT_TRUE(coordinator.has_value());
  EXPECT_EQ(LogOf("server-1"),
            absl::StrCat("started with --listen 127.0.0.1:0 --state-dir ", state_, "/server-1 --ready-file ", state_,
                         "/server-1.ready --dashboard 127.0.0.1:0\n"));
  EXPECT_THAT(LogOf("server-2"), HasSubstr(absl::StrCat(" --coordinator ", *coordinator)));
  EXPECT_EQ(LogOf("worker-2"), absl::StrCat("started with --coordinator ", *coordinator,
                                            " --name worker-2 --site local --slots 3 --bind none --state-dir ", state_,
                                            "/worker-2 --ready-file ", state_, "/worker-2.ready --allow-commands\n"));
  up.Signal(SIGINT);
  const ProgramOutcome result = up.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr(absl::StrCat("coordinator  ", *coordinator, "\nservers      ", *coordinator, ", 127.0.0.1:")));
  EXPECT_THAT(result.out, HasSubstr("workers      2 with 3 slots each\n"));
  EXPECT_EQ(result.err, "");
  for (const char* daemon : {"server-1", "server-2", "worker-1", "worker-2"}) {
    EXPECT_TRUE(fs::exists(state_ + "/" + daemon + "/stopped")) << daemon;
    EXPECT_TRUE(IsGoneSoon(PidOf(daemon))) << daemon;
  }
  EXPECT_EQ(RunningClusterAddress(state_), std::nullopt);
}

// SIGKILL of `up` kills every daemon, too.
TEST_F(UpTest, NothingSurvivesAKilledUp) {
  Program up(Up());
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
  up.Signal(SIGKILL);
  EXPECT_EQ(up.Wait().exit_code, 137);
  for (const char* daemon : {"server-1", "server-2", "worker-1", "worker-2"})
    EXPECT_TRUE(IsGoneSoon(PidOf(daemon))) << daemon;
  EXPECT_EQ(RunningClusterAddress(state_), std::nullopt);
}

// A second `up` in the same folder is refused, and the error has the first one's pid. The first one goes on.
TEST_F(UpTest, OneClusterAFolder) {
  Program up(Up());
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
  const ProgramOutcome second = RunProgram(Up());
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.err, absl::StrCat("hooke: another `hooke up` (pid ", up.pid(), ") runs from ", state_,
                                     "; stop it, or choose another folder with --state-dir\n"));
  EXPECT_TRUE(RunningClusterAddress(state_).has_value());
}

// A later run in the same folder gives the servers the same ports, so that stored jobs find them.
TEST_F(UpTest, ASecondRunTakesTheSamePorts) {
  std::string address;
  for (int run = 0; run < 2; ++run) {
    Program up(Up({"--servers", "1", "--workers", "1"}));
    ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
    if (run == 0) address = RunningClusterAddress(state_).value_or("");
    EXPECT_THAT(LogOf("server-1"), HasSubstr(run == 0 ? "--listen 127.0.0.1:0 " : "--listen " + address + " "));
    up.Signal(SIGTERM);
    EXPECT_EQ(up.Wait().exit_code, 0);
  }
}

// If another program now has a port of the earlier run, nothing starts, since stored jobs would not find their server.
TEST_F(UpTest, RefusesAPortThatIsInUse) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = absl::StrCat(ntohs(address.sin_port));
  fs::create_directories(state_);
  std::ofstream(state_ + "/server-2.address") << "127.0.0.1:" << port << "\n";
  const ProgramOutcome refused = RunProgram(Up());
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err,
            absl::StrCat("hooke: port ", port,
                         " is in use by another program, but server-2 needs it: the jobs stored in this folder know "
                         "that server as 127.0.0.1:",
                         port, " (", state_,
                         "/server-2.address); end the other program, or start a new cluster in another folder with "
                         "--state-dir\n"));
  EXPECT_FALSE(fs::exists(state_ + "/server-1/pid"));
  close(fd);
}

// If a worker dies, that is reported and the other daemons go on. If the coordinator dies, the cluster ends with exit
// code 1.
TEST_F(UpTest, ReportsADaemonThatDies) {
  Program up(Up());
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
  kill(PidOf("worker-1"), SIGKILL);
  ASSERT_TRUE(IsGoneSoon(PidOf("worker-1")));
  kill(PidOf("server-1"), SIGKILL);
  const ProgramOutcome result = up.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr(absl::StrCat(
                  "hooke: worker-1 has ended: killed by signal 9 (Killed); its groups start again where slots are "
                  "free. Its log: ",
                  state_, "/logs/worker-1.log\n")));
  EXPECT_THAT(result.err,
              HasSubstr(", the coordinator) has ended: killed by signal 9 (Killed); the cluster cannot go on."));
  EXPECT_TRUE(IsGoneSoon(PidOf("worker-2")));
}

// If a daemon cannot start, its output is shown and no daemon is left.
TEST_F(UpTest, ADaemonThatDoesNotStart) {
  WriteProgram("hooke-worker", "#!/bin/sh\necho 'cannot make /x: Permission denied'\nexit 3\n");
  const ProgramOutcome result = RunProgram(Up());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("hooke: worker-1 ended at its start (exit status 3); the end of "));
  EXPECT_THAT(result.err, HasSubstr("worker-1.log:\n  cannot make /x: Permission denied\n"));
  EXPECT_TRUE(IsGoneSoon(PidOf("server-1")));
}

// If programs are missing, the error names them and the folder that was searched.
TEST_F(UpTest, MissingPrograms) {
  fs::remove(programs_ + "/hooke-worker");
  const ProgramOutcome result = RunProgram(Up());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr(programs_ + "/hooke-worker: no such program; hooke-worker is looked for beside hooke"));
}

// A daemon that ignores SIGTERM is killed at the second Ctrl-C.
TEST_F(UpTest, ASecondInterruptHurries) {
  std::string stubborn = kDaemon;
  stubborn.replace(stubborn.find("exit 0' TERM"), 12, "' TERM");
  for (const char* program : {"hooke-server", "hooke-worker"}) WriteProgram(program, stubborn);
  Program up(Up({"--workers", "1", "--servers", "1"}));
  ASSERT_TRUE(up.Prints("Ctrl-C here", absl::Seconds(20)));
  up.Signal(SIGINT);
  ASSERT_TRUE(up.Prints("stopping the cluster", absl::Seconds(20)));
  up.Signal(SIGINT);
  const absl::Time hurried = absl::Now();
  const ProgramOutcome result = up.Wait();
  // Without the second Ctrl-C each daemon would have had 10 s to stop.
  EXPECT_LT(absl::Now() - hurried, absl::Seconds(9));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("worker-1 did not stop in time and was killed"));
  EXPECT_THAT(result.err, HasSubstr("server-1 did not stop in time and was killed"));
  EXPECT_TRUE(IsGoneSoon(PidOf("worker-1")));
}

}  // namespace
}  // namespace hooke
