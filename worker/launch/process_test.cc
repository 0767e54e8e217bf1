#include "worker/launch/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/launch/lives.h"
#include "worker/launch/process_tree.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Time Soon() { return SteadyTime() + absl::Seconds(30); }

// A shell script as a Process; its lines can be waited for.
class Script {
 public:
  explicit Script(const std::string& text, bool blocks_sigterm = false) {
    ProcessOptions options;
    options.blocks_sigterm = blocks_sigterm;
    options.argv = {"sh", "-c", text};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.folder = "/";
    options.on_line = [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      lines_.emplace_back(line);
    };
    absl::StatusOr<std::unique_ptr<Process>> started = Process::Start(std::move(options));
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) process_ = *std::move(started);
  }

  Process& process() { return *process_; }

  // Waits until there are `count` lines, and returns all lines.
  std::vector<std::string> Lines(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return lines_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(30)));
    return lines_;
  }

  // Waits for the process ids that the script prints, one per line.
  std::vector<pid_t> Pids(size_t count) {
    std::vector<pid_t> pids;
    for (const std::string& line : Lines(count)) {
      pid_t pid = 0;
      EXPECT_TRUE(absl::SimpleAtoi(line, &pid)) << line;
      pids.push_back(pid);
    }
    return pids;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Process> process_;
};

// Stop kills a whole tree: a child in a session of its own, an orphan, and a child that ignores SIGTERM.
TEST(ProcessTest, StopKillsTheWholeTree) {
  Script script(
      "trap '' TERM; echo $$;"
      "setsid sh -c 'echo $$; sleep 1000 & wait' &"
      "(setsid sh -c 'trap \"\" TERM; echo $$; sleep 1000; sleep 1000' &);"
      "sh -c 'echo $$; while :; do sleep 1000; done' & wait; wait; sleep 1000");
  const std::vector<pid_t> pids = script.Pids(4);
  script.process().Stop(absl::Milliseconds(200));
  ASSERT_TRUE(script.process().Wait(Soon()).has_value());
  for (pid_t pid : pids) EXPECT_FALSE(Lives(pid)) << pid;
}

// When a process ends by itself, the processes that it leaves running are killed. That includes an orphan in another
// session.
TEST(ProcessTest, NothingIsLeftBehind) {
  Script script(
      "setsid sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 1000\" & echo $$; sleep 1000' & read x < /dev/null; sleep "
      "0.3; exit 7");
  const std::vector<pid_t> pids = script.Pids(2);
  const std::optional<ProcessEnd> end = script.process().Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(ToString(*end), "exited with status 7");
  for (pid_t pid : pids) EXPECT_FALSE(Lives(pid)) << pid;
}

// A process that was stopped (SIGSTOP) does not delay the end.
TEST(ProcessTest, StoppedProcessDies) {
  Script script("sh -c 'trap \"\" TERM; echo $$; kill -STOP $$; sleep 1000' & wait; wait; sleep 1000");
  const std::vector<pid_t> pids = script.Pids(1);
  const absl::Time limit = Soon();
  while (ReadProcessStat(pids[0]).value_or(ProcessStat()).state != 'T' && SteadyTime() < limit) sched_yield();
  script.process().Stop(absl::Milliseconds(100));
  ASSERT_TRUE(script.process().Wait(Soon()).has_value());
  EXPECT_FALSE(Lives(pids[0]));
}

// A process that ignores SIGTERM is gone at once if there is no grace.
TEST(ProcessTest, KilledAtOnce) {
  Script script("trap '' TERM; echo $$; while :; do sleep 1000; done");
  script.Lines(1);
  script.process().Stop(absl::ZeroDuration());
  const std::optional<ProcessEnd> end = script.process().Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(ToString(*end), "ended by signal 9 (Killed)");
  EXPECT_FALSE(end->ok());
}

// A program that is started with SIGTERM blocked does not end on it, unless it unblocks it, as shells do. It is still
// killed.
TEST(ProcessTest, SigtermIsBlocked) {
  Script script("exec perl -e '$| = 1; print \"$$\\n\"; kill TERM => $$; print \"lives\\n\"; sleep 1000'", true);
  EXPECT_EQ(script.Lines(2)[1], "lives");
  script.process().Stop(absl::ZeroDuration());
  const std::optional<ProcessEnd> end = script.process().Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(ToString(*end), "ended by signal 9 (Killed)");
}

// A process that ends on SIGTERM has time for its last output.
TEST(ProcessTest, SigtermComesFirst) {
  Script script("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  script.Lines(1);
  script.process().Stop(absl::Seconds(20));
  const std::optional<ProcessEnd> end = script.process().Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok());
  EXPECT_THAT(script.Lines(0), Contains("bye"));
}

// A stopped process is continued, so that it can end on SIGTERM.
TEST(ProcessTest, StoppedProcessEndsInPeace) {
  Script script("trap 'echo bye; exit 0' TERM; echo $$; kill -STOP $$; while :; do sleep 0.05; done");
  const std::vector<pid_t> pids = script.Pids(1);
  const absl::Time limit = Soon();
  while (ReadProcessStat(pids[0]).value_or(ProcessStat()).state != 'T' && SteadyTime() < limit) sched_yield();
  script.process().Stop(absl::Seconds(20));
  const std::optional<ProcessEnd> end = script.process().Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << ToString(*end);
  EXPECT_THAT(script.Lines(0), Contains("bye"));
}

// A process that was not stopped never gets SIGCONT, because mpirun crashes on it while it ends.
TEST(ProcessTest, NoSigcontForARunningProcess) {
  Script script("trap 'echo continued' CONT; trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done");
  script.Lines(1);
  script.process().Stop(absl::Milliseconds(300));
  ASSERT_TRUE(script.process().Wait(Soon()).has_value());
  EXPECT_THAT(script.Lines(0), Contains("asked"));
  EXPECT_THAT(script.Lines(0), Not(Contains("continued")));
}

// Every line arrives before the end is reported. The test prints many lines, one that is longer than any buffer, and a
// last one without a line end.
TEST(ProcessTest, OutputIsComplete) {
  Script script("seq 1 20000; head -c 100000 /dev/zero | tr '\\0' x; echo; printf end");
  ASSERT_TRUE(script.process().Wait(Soon()).has_value());
  const std::vector<std::string> lines = script.Lines(0);
  ASSERT_GE(lines.size(), 20003u);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(lines[i], absl::StrCat(i + 1));
  size_t long_bytes = 0;
  for (size_t i = 20000; i + 1 < lines.size(); ++i) long_bytes += lines[i].size();
  EXPECT_EQ(long_bytes, 100000u);
  EXPECT_EQ(lines.back(), "end");
}

// Wait gives up at its deadline while the process lives.
TEST(ProcessTest, WaitHasADeadline) {
  Script script("sleep 1000");
  EXPECT_FALSE(script.process().Wait(SteadyTime() + absl::Milliseconds(20)).has_value());
}

// When the process that started the child is killed, the child dies too.
TEST(ProcessTest, DiesWithItsParent) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    Script script("sleep 1000");
    const pid_t pid = script.process().pid();
    if (write(fds[1], &pid, sizeof pid) < 0) _exit(1);
    while (true) pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(fds[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  // For a moment the child is still setpriv, which has not become the command yet.
  const absl::Time limit = Soon();
  auto command = [child] {
    std::string path(64, '\0');
    path.resize(
        std::max<ssize_t>(0, readlink(absl::StrCat("/proc/", child, "/exe").c_str(), path.data(), path.size())));
    return path;
  };
  while (absl::StrContains(command(), "setpriv") && SteadyTime() < limit) sched_yield();
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  while (Lives(child) && SteadyTime() < limit) sched_yield();
  EXPECT_FALSE(Lives(child));
  close(fds[0]);
  close(fds[1]);
}

// Returns the output of a program that ends well within the limit. There is no output if the program fails, hangs or is
// missing.
TEST(ProcessTest, OutputOfAProgram) {
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "A=b"};
  EXPECT_EQ(OutputOf({"sh", "-c", "echo out $A; echo err >&2"}, environment, absl::Seconds(20)), "out b\nerr\n");
  EXPECT_EQ(OutputOf({"sh", "-c", "echo out; exit 1"}, environment, absl::Seconds(20)), "");
  EXPECT_EQ(OutputOf({"sh", "-c", "echo out; sleep 1000"}, environment, absl::Milliseconds(200)), "");
  EXPECT_EQ(OutputOf({"/no/such/program"}, environment, absl::Seconds(20)), "");
}

// If the command does not exist, setpriv says so and the process ends. If the folder does not exist, Start fails.
TEST(ProcessTest, CannotStart) {
  ProcessOptions options;
  std::string said;
  options.argv = {"/no/such/program"};
  options.folder = "/";
  options.on_line = [&said](absl::string_view line) { absl::StrAppend(&said, line); };
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(options);
  ASSERT_TRUE(process.ok());
  const std::optional<ProcessEnd> end = (*process)->Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->ok());
  EXPECT_THAT(said, HasSubstr("/no/such/program"));
  options.folder = "/no/such/folder";
  process = Process::Start(options);
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(process.status().message(), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace hooke
