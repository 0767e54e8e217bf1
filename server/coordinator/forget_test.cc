// Shows how jobs are forgotten, and which shards servers are told to free: those of forgotten jobs, and no others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_server.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ForgetTest : public CoordinatorFixture {
 protected:
  // Sends a heartbeat of the server at `address`, which holds these jobs. Returns "id key" of each job that it is told
  // to free.
  std::vector<std::string> Free(const std::string& address, const std::vector<std::string>& in_memory,
                                const std::map<std::string, uint64_t>& on_disk, bool lists = true) {
    v1::ServerHeartbeatRequest request = FakeServer(address);
    for (const std::string& job_id : in_memory) request.add_jobs(job_id);
    request.set_lists_disk_jobs(lists);
    for (const auto& [job_id, bytes] : on_disk) {
      request.add_disk_jobs()->set_job_id(job_id);
      request.mutable_disk_jobs()->rbegin()->set_bytes(bytes);
    }
    std::vector<std::string> told;
    const v1::ServerHeartbeatResponse response = coordinator_->ServerHeartbeat(request, now_).value();
    for (const v1::ForgottenJob& job : response.forgotten_jobs()) told.push_back(job.job_id() + " " + job.job_key());
    return told;
  }

  std::string SubmitAndCancel() {
    std::string job_id = Submit();
    EXPECT_TRUE(coordinator_->Cancel(job_id, now_).ok());
    return job_id;
  }
};

// A user forgets a job that has ended: its record and log are gone, also after a restart. Each server that holds a
// shard is told to free it, whenever it comes.
TEST_F(ForgetTest, AJobThatHasEnded) {
  const std::string job_id = SubmitAndCancel();
  EXPECT_THAT(Free("b:1", {}, {{job_id, 10}}), IsEmpty());
  const absl::StatusOr<v1::JobStatus> last = coordinator_->Forget(job_id, now_);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(coordinator_->Status(job_id, now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + job_id + ".log"));
  const std::string told = job_id + " s1";
  EXPECT_THAT(Free("b:1", {}, {}, /*lists=*/false), ElementsAre(told)) << "its last list is still valid";
  EXPECT_THAT(Free("b:1", {}, {}), IsEmpty()) << "it has freed it";
  EXPECT_THAT(Free("c:1", {job_id}, {}), ElementsAre(told)) << "in memory";
  Restart();
  Pass(absl::Hours(1), {});
  EXPECT_THAT(Free("away:1", {}, {{job_id, 10}}), ElementsAre(told));
  EXPECT_EQ(Submit(), "fashion-2") << "the number is not given again";
}

// A job that waits or runs is not forgotten, and the message says what to do. For an unknown job the error is
// NOT_FOUND.
TEST_F(ForgetTest, NoOtherJob) {
  const std::string job_id = Submit();
  EXPECT_EQ(
      coordinator_->Forget(job_id, now_).status(),
      absl::FailedPreconditionError("job fashion-1 has not ended: cancel it first, with `hooke cancel fashion-1`"));
  EXPECT_TRUE(coordinator_->Status(job_id, now_).ok());
  EXPECT_EQ(coordinator_->Forget("nope-7", now_).status(),
            absl::NotFoundError("no job nope-7: `hooke jobs` lists them"));
  ASSERT_TRUE(coordinator_->Cancel(job_id, now_).ok());
  EXPECT_TRUE(coordinator_->Forget(job_id, now_).ok());
  EXPECT_EQ(coordinator_->Forget(job_id, now_).status().code(), absl::StatusCode::kNotFound);
}

// No server is told to free shards of jobs that the coordinator knows, whether these have ended or not. Nor is it told
// to free shards of unknown jobs. The coordinator's store may be new, or the server may be from another cluster.
TEST_F(ForgetTest, ShardsOfOtherJobsStay) {
  const std::string running = Submit();
  const std::string ended = SubmitAndCancel();
  EXPECT_THAT(Free("b:1", {running}, {{ended, 10}, {"fashion-77", 10}, {"stranger", 10}}), IsEmpty());
  EXPECT_EQ(Submit(), "fashion-78") << "a new job does not get a stranger's id";
  store_ = std::make_shared<InMemoryRecordStore>();  // The store was lost, or is an older copy.
  Restart();
  EXPECT_THAT(Free("b:1", {running}, {{ended, 10}, {"fashion-77", 10}}), IsEmpty());
}

// Servers are told to free shards only after the store has removed the job. Otherwise a coordinator that dies meanwhile
// would later list a job whose center is gone.
TEST_F(ForgetTest, NothingIsFreedBeforeItIsStored) {
  const std::string job_id = SubmitAndCancel();
  store_->FailWith(absl::InternalError("broken disk"));
  const absl::Status status = coordinator_->Forget(job_id, now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("job fashion-1 is forgotten, but that could not be stored yet: "));
  EXPECT_THAT(Free("b:1", {}, {{job_id, 10}}), IsEmpty());
  Pass(absl::Seconds(3), {});
  EXPECT_THAT(Free("b:1", {}, {{job_id, 10}}), IsEmpty());
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(3), {});
  EXPECT_THAT(Free("b:1", {}, {{job_id, 10}}), ElementsAre(job_id + " s1"));
}

// Only jobs that ended longer ago than the limit are forgotten. The time during which the coordinator was not running
// counts too.
TEST_F(ForgetTest, OldJobs) {
  settings_.cluster.keep.age_max = absl::Hours(2);
  Restart();
  const std::string first = SubmitAndCancel();
  Pass(absl::Hours(1), {});
  const std::string second = SubmitAndCancel();
  Pass(absl::Minutes(59), {});
  EXPECT_TRUE(coordinator_->Status(first, now_).ok());
  Pass(absl::Minutes(2), {});
  EXPECT_EQ(coordinator_->Status(first, now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(coordinator_->Status(second, now_).ok());
  now_ += absl::Hours(3);
  Restart();
  Pass(absl::Seconds(3), {});
  EXPECT_EQ(coordinator_->Status(second, now_).status().code(), absl::StatusCode::kNotFound);
}

// The oldest finished centers are forgotten until the rest fits. Shards of one job on several servers add up. Centers
// of running jobs do not count, nor do those of jobs that the coordinator does not know.
TEST_F(ForgetTest, ManyBytes) {
  settings_.cluster.keep.bytes_max = 100;
  Restart();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(SubmitAndCancel());
    now_ += absl::Seconds(1);
  }
  const std::string running = Submit();
  Free("b:1", {}, {{ids[0], 25}, {ids[1], 40}, {ids[2], 40}, {running, 1000}, {"stranger", 1000}});
  Pass(absl::Seconds(70), {});
  EXPECT_EQ(coordinator_->Status(ids[0], now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(coordinator_->Status(ids[1], now_).ok()) << "80 bytes are left";
  Free("c:1", {}, {{ids[2], 30}});
  Pass(absl::Seconds(2), {});
  EXPECT_EQ(coordinator_->Status(ids[1], now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(coordinator_->Status(ids[2], now_).ok());
  EXPECT_TRUE(coordinator_->Status(running, now_).ok());
}

}  // namespace
}  // namespace hooke
