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
using ::testing::IsSupersetOf;

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
  const std::vector<std::string> command = SbatchCommand(Facts(), submission);
  EXPECT_THAT(command, IsSupersetOf({"--account=physics", "--qos=high", "--time=8:00:00", "--constraint=ib&opa",
                                     "--cpus-per-task=2", "--mem-per-cpu=4G"}));
  // sbatch takes the last of two values.
  const auto at = [&command](const char* flag) { return std::find(command.begin(), command.end(), flag); };
  EXPECT_LT(at("--partition=short"), at("--partition=long"));
  EXPECT_LT(at("--partition=long"), at("/opt/worker.sbatch"));
}

TEST(SlurmCommandsTest, ScancelIsGentleWithWorkersThatRun) {
  EXPECT_THAT(ScancelCommand({"7", false}), ElementsAre("scancel", "7"));
  EXPECT_THAT(ScancelCommand({"7", true}), ElementsAre("scancel", "--batch", "--signal=TERM", "7"));
}

TEST(SlurmCommandsTest, SbatchSaysTheId) {
  EXPECT_EQ(*ReadSbatch("4211\n"), "4211");
  EXPECT_EQ(*ReadSbatch("4211;cluster\n"), "4211");
  EXPECT_EQ(*ReadSbatch("sbatch: warning: 2 nodes are old\n4211\n"), "4211");
  EXPECT_THAT(std::string(ReadSbatch("nothing\n").status().message()), HasSubstr("no number: nothing"));
  EXPECT_FALSE(ReadSbatch("").ok());
}

// Only the batch jobs of this site and this coordinator are ours. Lines that squeue would not print are left out.
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

// What was submitted is found again in the queue.
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
