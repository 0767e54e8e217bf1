// Jobs with a command, from submission to their end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using CommandJobsTest = CoordinatorFixture;

v1::SubmitRequest CommandSubmission() {
  v1::SubmitRequest request;
  request.set_submission_id("s1");
  v1::JobSpec& job = *request.mutable_job();
  job.set_name("own");
  for (const char* argument : {"sh", "-c", "exit 0"}) job.mutable_command()->add_arguments(argument);
  job.mutable_command()->set_directory("/work");
  (*job.mutable_command()->mutable_environment())["PASSWORD"] = "secret";
  (*(*job.mutable_command()->mutable_sites())["hpc"].mutable_environment())["PASSWORD"] = "secret";
  job.mutable_groups()->set_ranks(2);
  return request;
}

// A job with a command waits until a worker allows commands, and its reason says what to do. The job ends with its
// group, without an evaluation. Its rank gets the environment, but no list of jobs shows it.
TEST_F(CommandJobsTest, RunsWhereCommandsAreAllowed) {
  Heartbeat("a:1");
  FakeWorker strict("strict", 4), open("open", 2);
  ASSERT_TRUE(strict.Connect(*coordinator_, now_).ok());
  const absl::StatusOr<std::string> id = coordinator_->Submit(CommandSubmission(), now_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(Status(*id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Status(*id).reason(),
            "1st in the queue; no worker allows commands; start hooke-worker with --allow-commands");
  EXPECT_THAT(Log(*id), HasSubstr("job submitted: sh -c 'exit 0', 1 group x 2 ranks"));

  open.AllowCommands();
  ASSERT_TRUE(open.Connect(*coordinator_, now_).ok());
  strict.Receive(now_);
  open.Receive(now_);
  EXPECT_THAT(strict.started(), ElementsAre());
  const GroupKey key = {*id, 0, 1};
  ASSERT_THAT(open.started(), ElementsAre(key));
  EXPECT_EQ(open.running().at(key).start.group().job().command().environment().at("PASSWORD"), "secret");
  EXPECT_TRUE(Status(*id).spec().command().environment().empty());
  EXPECT_TRUE(Status(*id).spec().command().sites().at("hpc").environment().empty());
  EXPECT_EQ(Status(*id).spec().command().arguments_size(), 3);

  open.End(key, absl::OkStatus(), now_);
  EXPECT_EQ(Status(*id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Status(*id).reason(), "all groups have finished");
  EXPECT_EQ(Status(*id).groups_size(), 1);
}

// A job that needs GPUs waits for a worker that has enough of them for each slot, and says so. `hooke nodes` has them.
TEST_F(CommandJobsTest, RunsWhereThereAreGpusForEachSlot) {
  Heartbeat("a:1");
  FakeWorker none("none", 4), few("few", 4), enough("enough", 2);
  for (FakeWorker* worker : {&none, &few, &enough}) worker->AllowCommands();
  few.SetGpus(7);
  enough.SetGpus(4);
  ASSERT_TRUE(none.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(few.Connect(*coordinator_, now_).ok());
  v1::SubmitRequest request = CommandSubmission();
  request.mutable_job()->mutable_groups()->set_gpus_per_rank(2);
  const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(
      Status(*id).reason(),
      "1st in the queue; no worker has slots with 2 GPUs each; see GPUS in hooke nodes, and --gpus and --slots of "
      "hooke-worker");
  ASSERT_TRUE(enough.Connect(*coordinator_, now_).ok());
  enough.Receive(now_);
  EXPECT_THAT(enough.started(), ElementsAre(GroupKey{*id, 0, 1}));
  std::map<std::string, uint32_t> gpus;
  for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) gpus[node.name()] = node.gpus();
  EXPECT_EQ(gpus["few"], 7u);
  EXPECT_EQ(gpus["enough"], 4u);
}

// If other machines can reach the coordinator without a token, it refuses jobs with a command.
TEST(ReachedByOthersTest, CommandsAreRefused) {
  ClusterStateOptions options;
  options.reached_by_others_at = "0.0.0.0:7411";
  ClusterState state(options, {}, {});
  const absl::Status status = state.BeginSubmit(CommandSubmission(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the coordinator listens at 0.0.0.0:7411"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--token-file"));
}

// Nobody can fetch the files of a job that has ended. So they must not fill the coordinator's store.
TEST_F(CommandJobsTest, AJobThatHasEndedKeepsNoFiles) {
  v1::SubmitRequest request = CommandSubmission();
  v1::CommandSpec& command = *request.mutable_job()->mutable_command();
  command.clear_directory();
  command.mutable_files()->set_manifest_sha256(std::string(32, 'x'));
  command.mutable_files()->set_manifest_bytes(1);
  const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(coordinator_->FilesOfAll().size(), 1u);
  ASSERT_TRUE(coordinator_->Cancel(*id, now_).ok());
  EXPECT_EQ(coordinator_->FilesOfAll().size(), 0u);
}

// If a command's end cannot be mended by a new try, the job fails at once, with the worker's message.
TEST_F(CommandJobsTest, AnExitStatusFailsTheJobAtOnce) {
  Heartbeat("a:1");
  FakeWorker worker("w1", 2);
  worker.AllowCommands();
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  const absl::StatusOr<std::string> id = coordinator_->Submit(CommandSubmission(), now_);
  ASSERT_TRUE(id.ok()) << id.status();
  worker.Receive(now_);
  worker.End({*id, 0, 1}, absl::FailedPreconditionError("rank 1: the command exited with status 3"), now_);
  EXPECT_EQ(Status(*id).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Status(*id).reason(), HasSubstr("the command exited with status 3"));
}

}  // namespace
}  // namespace hooke
