// The command lines of Slurm's programs, and what is read from their output.

#include "worker/slurm/slurm_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;

SlurmSiteFacts Facts() {
  return {"hpc", "head:7411", "/opt/worker.sbatch", "/home/me/slurm", {"--partition=short"}, {"--site=hpc"}};
}

TEST(SlurmCommandsTest, SbatchGetsWhatTheJobAsksFor) {
  BatchPlan::Submission submission = {"fashion-1", 4, {}};
  EXPECT_THAT(SbatchCommand(Facts(), submission),
              ElementsAre("sbatch", "--parsable", "--job-name=hooke-fashion-1", "--output=/home/me/slurm/slurm-%j.log",
                          "--chdir=/home/me/slurm", "--partition=short", "--ntasks=4",
                          "--comment=hooke hpc head:7411 fashion-1 4", "/opt/worker.sbatch", "--site=hpc",
                          "--only-job=fashion-1"));
  v1::SlurmSpec& slurm = submission.slurm;
  slurm.set_partition("long");
  slurm.set_account("physics");
  slurm.set_qos("high");
  slurm.set_time("8:00:00");
  slurm.set_constraint("ib&opa");
  slurm.set_cpus_per_task(2);
  slurm.set_memory_per_cpu("4G");
  submission.gpus_per_rank = 2;
  const std::vector<std::string> command = SbatchCommand(Facts(), submission);
  EXPECT_THAT(command, IsSupersetOf({"--account=physics", "--qos=high", "--time=8:00:00", "--constraint=ib&opa",
                                     "--cpus-per-task=2", "--mem-per-cpu=4G", "--gpus-per-task=2"}));
  // sbatch takes the last of two values.
  const auto at = [&command](const char* flag) { return std::find(command.begin(), command.end(), flag); };
  EXPECT_LT(at("--partition=short"), at("--partition=long"));
  EXPECT_LT(at("--partition=long"), at("/opt/worker.sbatch"));
}

// Batch jobs share a command, so that many ends do not take many times as long.
TEST(SlurmCommandsTest, ScancelIsGentleWithWorkersThatRun) {
  EXPECT_THAT(ScancelCommands({}), IsEmpty());
  EXPECT_THAT(ScancelCommands({{"7", false}}), ElementsAre(ElementsAre("scancel", "7")));
  EXPECT_THAT(
      ScancelCommands({{"7", false}, {"8", true}, {"9", false}, {"10", true}}),
      ElementsAre(ElementsAre("scancel", "--batch", "--signal=TERM", "8", "10"), ElementsAre("scancel", "7", "9")));
}

// Variables with which a user filters squeue are removed, because they would hide batch jobs. The user's defaults for
// sbatch stay.
TEST(SlurmCommandsTest, TheEnvironmentHidesNothing) {
  EXPECT_THAT(SqueueCommand(), testing::Contains("--all"));
  EXPECT_THAT(SlurmEnvironment({"PATH=/bin", "SQUEUE_PARTITION=short", "SLURM_CLUSTERS=b", "SBATCH_CLUSTERS=b",
                                "SCANCEL_INTERACTIVE=1", "SBATCH_WAIT=1", "SBATCH_ARRAY_INX=0-3", "SBATCH_ACCOUNT=x",
                                "SBATCH_WAIT_ALL_NODES=1", "SLURM_CONF=/etc/slurm.conf"}),
              ElementsAre("PATH=/bin", "SBATCH_ACCOUNT=x", "SBATCH_WAIT_ALL_NODES=1", "SLURM_CONF=/etc/slurm.conf"));
}

TEST(SlurmCommandsTest, SomeFlagsOfSbatchAreRefused) {
  EXPECT_TRUE(CheckSbatchFlags({"--mem=4G", "--hold", "--wait-all-nodes=1", "--cluster-constraint=a"}).ok());
  for (const char* flag : {"--array=0-3", "--arr=0-3", "--clusters=b", "--cluster=b", "--wait", "--quiet",
                           "--test-only", "--wrap=true", "--output=/a"}) {
    EXPECT_EQ(CheckSbatchFlags({"--mem=4G", flag}).code(), absl::StatusCode::kInvalidArgument) << flag;
  }
  EXPECT_EQ(CheckSbatchFlags({"--array=0-3"}).message(),
            "--sbatch=--array=0-3: --array is not allowed: each batch job must be one job");
}

TEST(SlurmCommandsTest, SbatchSaysTheId) {
  EXPECT_EQ(*ReadSbatch("4211\n"), "4211");
  EXPECT_EQ(*ReadSbatch("4211;cluster\n"), "4211");
  EXPECT_EQ(*ReadSbatch("sbatch: warning: 2 nodes are old\n4211\n"), "4211");
  EXPECT_THAT(std::string(ReadSbatch("nothing\n").status().message()), HasSubstr("no number: nothing"));
  EXPECT_FALSE(ReadSbatch("").ok());
}

// Only the batch jobs of this site and this coordinator are ours. Lines of another form, such as warnings, are left
// out.
TEST(SlurmCommandsTest, TheQueueIsRead) {
  const std::vector<BatchJob> jobs = ReadSqueue(Facts(),
                                                "1|PENDING|Priority|hooke hpc head:7411 a-1 4\n"
                                                "2|RUNNING|None|hooke hpc head:7411 a-1 2\n"
                                                "3|COMPLETING|None|hooke hpc head:7411 b-2 1\n"
                                                "4|CONFIGURING|None|hooke hpc head:7411 b-2 1\n"
                                                "5|PENDING|Priority|hooke cloud head:7411 a-1 4\n"
                                                "6|PENDING|Priority|hooke hpc other:7411 a-1 4\n"
                                                "7|PENDING|Priority|(null)\n"
                                                "8|PENDING|Priority|hooke hpc head:7411 a-1 many\n"
                                                "x|PENDING|Priority|hooke hpc head:7411 a-1 1\n"
                                                "squeue: warning | | |\n\n");
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].id, "1");
  EXPECT_EQ(jobs[0].job_id, "a-1");
  EXPECT_EQ(jobs[0].ranks, 4u);
  EXPECT_EQ(jobs[0].reason, "Priority");
  EXPECT_EQ(jobs[0].state, BatchJob::State::kWaits);
  EXPECT_EQ(jobs[1].state, BatchJob::State::kRuns);
  EXPECT_EQ(jobs[2].state, BatchJob::State::kEnds);
  EXPECT_EQ(jobs[3].state, BatchJob::State::kWaits);
}

TEST(SlurmCommandsTest, SlurmIsAskedHowBatchJobsEnded) {
  EXPECT_THAT(EndStatesCommand({"7", "8"}),
              ElementsAre("squeue", "--all", "--states=all", "--noheader", "--format=%i|%T", "--jobs=7,8"));
  EXPECT_THAT(ReadEndStates("squeue: warning\n7|TIMEOUT\n8|NODE_FAIL\n9|\nx|FAILED\n10|a|b\n\n"),
              ElementsAre(Pair("7", "TIMEOUT"), Pair("8", "NODE_FAIL")));
  EXPECT_THAT(ReadEndStates("7|\xfc"), ElementsAre(Pair("7", "\\xfc")));
}

// Batch jobs that Slurm or an administrator holds back never start by themselves. The user's own hold is the user's
// wish.
TEST(SlurmCommandsTest, HeldBatchJobsAreKnown) {
  const auto state = [](const std::string& words) {
    return ReadSqueue(Facts(), "1|" + words + "|hooke hpc head:7411 a-1 4").at(0).state;
  };
  for (const char* held : {"PENDING|JobHeldAdmin", "PENDING|launch failed requeued held", "RESV_DEL_HOLD|None",
                           "REQUEUE_HOLD|launch_failed_requeued_held", "SPECIAL_EXIT|None"}) {
    EXPECT_EQ(state(held), BatchJob::State::kHeld) << held;
  }
  for (const char* waits : {"PENDING|JobHeldUser", "PENDING|Priority", "REQUEUE_HOLD|job requeued in held state"}) {
    EXPECT_EQ(state(waits), BatchJob::State::kWaits) << waits;
  }
  EXPECT_EQ(state("RUNNING|None"), BatchJob::State::kRuns);
}

// A message of the agent must be valid UTF-8, so no other byte comes out of the queue.
TEST(SlurmCommandsTest, BytesThatAreNoUtf8) {
  const std::vector<BatchJob> jobs = ReadSqueue(Facts(),
                                                "1|PENDING|Grund: \xfc\xfc|hooke hpc head:7411 a-1 4\n"
                                                "2|PENDING|Priority|hooke hpc head:7411 a\xff-1 4\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].reason, "Grund: \\xfc\\xfc");
  EXPECT_THAT(std::string(ReadSbatch("kein \xfc\n").status().message()), HasSubstr("no number: kein \\xfc"));
}

// The comment of a batch job is read back as the submission that it was made from.
TEST(SlurmCommandsTest, ACommentComesBack) {
  const std::vector<std::string> command = SbatchCommand(Facts(), {"fashion-1", 4, {}});
  for (const std::string& word : command) {
    const std::string flag = "--comment=";
    if (word.rfind(flag, 0) != 0) continue;
    const std::vector<BatchJob> jobs = ReadSqueue(Facts(), "9|PENDING|None|" + word.substr(flag.size()));
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].job_id, "fashion-1");
    EXPECT_EQ(jobs[0].ranks, 4u);
  }
}

}  // namespace
}  // namespace hooke
