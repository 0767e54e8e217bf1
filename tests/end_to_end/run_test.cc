// Runs `hooke run` with real daemons and a real mpirun: a cluster starts, runs a shell script as the ranks, and ends.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/launch/process.h"
#include "worker/launch/process_tree.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    fs::create_directories(folder_ + "/bin");
    fs::create_directories(folder_ + "/work");
    // Copies, because a worker looks for hooke-rank beside the file that a link leads to.
    for (const char* program : {"client/hooke", "server/hooke-server", "worker/daemon/hooke-worker"}) {
      fs::copy_file(program, fs::path(folder_) / "bin" / fs::path(program).filename());
    }
    // No job of this test has a built-in network.
    std::ofstream(folder_ + "/bin/hooke-rank") << "#!/bin/sh\nexit 1\n";
    fs::permissions(folder_ + "/bin/hooke-rank", fs::perms::owner_all);
  }
  ~RunTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Process> Start(const std::vector<std::string>& arguments) {
    ProcessOptions options;
    options.argv = {folder_ + "/bin/hooke", "run"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.environment = {"HOME=" + folder_, "PATH=/usr/local/bin:/usr/bin:/bin"};
    options.folder = folder_ + "/work";
    options.on_line = [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      absl::StrAppend(&output_, line, "\n");
    };
    absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  int Run(const std::vector<std::string>& arguments) {
    const std::unique_ptr<Process> process = Start(arguments);
    return process->Wait(SteadyTime() + absl::Seconds(60)).value_or(ProcessEnd{-1, 0}).exit_status;
  }

  std::string Output() {
    absl::MutexLock lock(&mutex_);
    return output_;
  }

  bool Prints(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return absl::StrContains(output_, text); };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(30));
  }

  // Returns whether the cluster of this test has ended.
  bool ClusterIsGone() const { return !fs::exists(folder_ + "/.hooke/up/coordinator"); }

  const std::string folder_ = absl::StrCat("/tmp/hooke-run-test-", getpid());
  absl::Mutex mutex_;
  std::string output_ ABSL_GUARDED_BY(mutex_);
};

// Each rank of each group prints into the log. The run ends with exit code 0, without an evaluation and without a
// cluster left.
TEST_F(RunTest, RunsEveryRankOfEveryGroup) {
  EXPECT_EQ(Run({"--groups", "2", "--ranks", "2", "--", "sh", "-c", "echo from $(pwd); test -f \"$HOOKE_START\""}), 0)
      << Output();
  for (const char* rank : {"group 0 rank 0", "group 0 rank 1", "group 1 rank 0", "group 1 rank 1"}) {
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat(rank, ": from ", folder_, "/work\n")));
  }
  EXPECT_THAT(Output(), HasSubstr("job succeeded"));
  EXPECT_THAT(Output(), Not(HasSubstr("evaluation")));
  EXPECT_TRUE(ClusterIsGone());
}

// If the script fails, the run fails at once. The reason has the exit status and the end of stderr.
TEST_F(RunTest, FailsWithTheReason) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Run({"--ranks", "2", "--", "sh", "-c", "echo 'ValueError: x' >&2; exit 3"}), 1);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  EXPECT_THAT(Output(), ContainsRegex("hooke: job run-1 failed: group 0 failed at step 0: rank [01] exited with status "
                                      "3; the end of its stderr: ValueError: x\n"));
  EXPECT_TRUE(ClusterIsGone());
}

// A missing program is reported at once, instead of being tried ten times.
TEST_F(RunTest, NamesAMissingProgram) {
  EXPECT_EQ(Run({"--", "no-such-program"}), 1);
  EXPECT_THAT(Output(), HasSubstr("there is no program no-such-program on this node's PATH"));
  EXPECT_THAT(Output(), Not(HasSubstr("start 2")));
}

// Ctrl-C cancels the job and takes down the cluster that the run had started.
TEST_F(RunTest, CtrlCCancels) {
  const std::unique_ptr<Process> process = Start({"--", "sh", "-c", "echo ready $$; sleep 1000"});
  ASSERT_TRUE(Prints("rank 0: ready ")) << Output();
  // A second run is refused, because it would lose the cluster when this run ends.
  EXPECT_EQ(Run({"--", "true"}), 1);
  EXPECT_THAT(Output(), HasSubstr(absl::StrCat("another `hooke run`, process ", process->pid(), ", has a cluster")));
  kill(process->pid(), SIGINT);
  const std::optional<ProcessEnd> end = process->Wait(SteadyTime() + absl::Seconds(30));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_status, 130) << Output();
  EXPECT_THAT(Output(), HasSubstr("hooke: job run-1 is cancelled"));
  EXPECT_TRUE(ClusterIsGone());
}

// A run whose job has to wait says what for, because the job's log is empty until it starts.
TEST_F(RunTest, SaysWhyItsJobIsQueued) {
  const std::unique_ptr<Process> first = Start({"--", "sh", "-c", "echo ready $$; sleep 1000"});
  ASSERT_TRUE(Prints("rank 0: ready ")) << Output();
  std::string coordinator;
  std::getline(std::ifstream(folder_ + "/.hooke/up/coordinator"), coordinator);
  const std::unique_ptr<Process> second = Start({"--coordinator", coordinator, "--", "true"});
  EXPECT_TRUE(Prints("hooke: job run-2 is queued: 1st in the queue; ")) << Output();
  for (Process* process : {second.get(), first.get()}) {
    kill(process->pid(), SIGINT);
    EXPECT_EQ(process->Wait(SteadyTime() + absl::Seconds(30)).value_or(ProcessEnd{}).exit_status, 130) << Output();
  }
}

// A killed run leaves its job. The next run in that folder cancels it instead of running it again.
TEST_F(RunTest, TheJobOfAKilledRunIsNotRunAgain) {
  const std::unique_ptr<Process> process = Start({"--", "sh", "-c", "echo first $$; sleep 1000"});
  ASSERT_TRUE(Prints("rank 0: first ")) << Output();
  kill(process->pid(), SIGKILL);
  ASSERT_TRUE(process->Wait(SteadyTime() + absl::Seconds(30)).has_value());
  EXPECT_EQ(Run({"--", "echo", "second"}), 0) << Output();
  EXPECT_THAT(Output(),
              HasSubstr("hooke: job run-1 is cancelled, because the `hooke run` that followed it was killed"));
  EXPECT_THAT(Output(), HasSubstr("rank 0: second"));
  EXPECT_THAT(Output(), HasSubstr("hooke: submitted run-2"));
  // The third run has nothing to cancel.
  EXPECT_EQ(Run({"--", "echo", "third"}), 0) << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("run-2 is cancelled")));
  EXPECT_TRUE(ClusterIsGone());
}

}  // namespace
}  // namespace hooke
