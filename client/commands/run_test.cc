// Tests `hooke run` against a scripted coordinator. tests/end_to_end/run_test.cc runs it with a cluster of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"
#include "client/process/run_program.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    v1::JobStatus failed = SucceededJob("bad-1");
    failed.set_state(v1::JOB_STATE_FAILED);
    failed.set_reason("group 0 failed at step 0: rank 1 exited with status 3");
    coordinator_.jobs["run-1"] = {SucceededJob("run-1")};
    coordinator_.jobs["bad-1"] = {failed};
    coordinator_.log = "2030-01-01T00:00:00Z group 0 rank 0: step 1\n";
    listener_ = std::make_unique<FakeListener>(coordinator_);
  }

  ProgramOutcome Run(const std::vector<std::string>& arguments) {
    ProgramOptions options;
    options.arguments = {"client/hooke", "run"};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = {"HOME=/nowhere", "HOOKE_COORDINATOR=" + listener_->address(), "PATH=/usr/bin:/bin"};
    return RunProgram(options);
  }

  FakeCoordinatorService coordinator_;
  std::unique_ptr<FakeListener> listener_;
};

// The words after -- become the job's command, whatever they look like. The log is the output; the exit code is 0.
TEST_F(RunTest, SubmitsAndShowsTheLog) {
  const ProgramOutcome result = Run({"--groups", "2", "--ranks", "3", "--rule", "async", "--interval", "4", "--",
                                     "python3", "train.py", "--ranks", "9", "[a,b]", "--", "run", "--help"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, coordinator_.log);
  EXPECT_EQ(result.err, "hooke: submitted run-1\n");
  absl::MutexLock lock(&coordinator_.mutex);
  ASSERT_EQ(coordinator_.submitted.size(), 1u);
  const v1::JobSpec& job = coordinator_.submitted[0].job();
  EXPECT_THAT(job.command().arguments(),
              ElementsAre("python3", "train.py", "--ranks", "9", "[a,b]", "--", "run", "--help"));
  EXPECT_EQ(job.command().directory(), std::filesystem::current_path().string());
  EXPECT_EQ(job.groups().count(), 2u);
  EXPECT_EQ(job.groups().ranks(), 3u);
  EXPECT_EQ(job.averaging().rule(), v1::AveragingSpec::ASYNC);
  EXPECT_EQ(job.averaging().interval(), 4u);
}

// A job that fails gives exit code 1 and its reason.
TEST_F(RunTest, AFailedJobIsExitCode1) {
  const ProgramOutcome result = Run({"--name", "bad", "--", "sh"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "hooke: submitted bad-1\nhooke: job bad-1 failed: group 0 failed at step 0: rank 1 exited with status 3\n");
}

// A wrong command line is refused with what to do, before anything starts.
TEST_F(RunTest, RefusesAWrongCommandLine) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--"}}) {
    const ProgramOutcome result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "hooke: no command; name one after --, as in `hooke run --ranks 2 -- python3 train.py`\n");
  }
  EXPECT_EQ(Run({"--", ""}).exit_code, 2);
  EXPECT_THAT(Run({"--", ""}).err, HasSubstr("command: names no program"));
  EXPECT_THAT(Run({"--name", "A B", "--", "sh"}).err, HasSubstr("name: \"A B\" is not a name"));
  EXPECT_THAT(Run({"--rule", "none", "--interval", "4", "--", "sh"}).err,
              HasSubstr("--interval does not apply to averaging.rule none; only to elastic"));
  EXPECT_EQ(Run({"--rule", "nope", "--", "sh"}).exit_code, 2);
  EXPECT_EQ(Run({"python3", "train.py"}).exit_code, 2);
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("The command stands after --"));
  absl::MutexLock lock(&coordinator_.mutex);
  EXPECT_TRUE(coordinator_.submitted.empty());
}

}  // namespace
}  // namespace hooke
