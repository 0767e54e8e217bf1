// The Coordinator with its writer thread and a store that blocks. Of the calls in these tests, only Submit and Cancel
// wait for the store, and only for their own changes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <climits>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clocks/instant.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/journal/job_log.h"
#include "server/records/job_store.h"
#include "server/records/record_store.h"

namespace hooke {
namespace {

using testing::HasSubstr;

constexpr uint32_t kGroups = 60;
constexpr absl::Duration kLimit = absl::Seconds(20);

// A store that can be blocked. While it is blocked, each Write waits.
class GatedStore : public InMemoryRecordStore {
 public:
  absl::Status Write(const RecordChanges& changes) override {
    {
      absl::MutexLock lock(&gate_);
      ++writes_;
      gate_.Await(absl::Condition(this, &GatedStore::MayPass));
    }
    return InMemoryRecordStore::Write(changes);
  }

  void Stop() {
    absl::MutexLock lock(&gate_);
    let_through_ = writes_;
  }
  void LetThrough(int more) {
    absl::MutexLock lock(&gate_);
    let_through_ += more;
  }
  void Open() {
    absl::MutexLock lock(&gate_);
    let_through_ = INT_MAX;
  }
  // Waits until `writes` Writes are blocked. False: it took too long.
  bool AwaitBlocked(int writes) {
    absl::MutexLock lock(&gate_);
    const auto blocked = [this, writes]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_) { return writes_ >= let_through_ + writes; };
    return gate_.AwaitWithTimeout(absl::Condition(&blocked), kLimit);
  }

 private:
  bool MayPass() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_) { return writes_ <= let_through_; }

  absl::Mutex gate_;
  int writes_ ABSL_GUARDED_BY(gate_) = 0;
  int let_through_ ABSL_GUARDED_BY(gate_) = INT_MAX;
};

// A worker with a job of many groups. Each group can end once, and every end is one more change to store. Another job
// is idle, because no slot is free for it.
class CoordinatorStoreTest : public testing::Test {
 protected:
  CoordinatorStoreTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    Start(kLimit);
  }
  ~CoordinatorStoreTest() override {
    store_->Open();
    coordinator_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start(absl::Duration store_timeout) {
    CoordinatorOptions options;
    options.store = store_;
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.store_timeout = store_timeout;
    coordinator_ = *Coordinator::Create(std::move(options), now_);
    Heartbeat();
  }
  void Heartbeat() {
    EXPECT_TRUE(coordinator_->ServerHeartbeat(FakeServer("b:1"), now_).ok());
    AnswerDials(*coordinator_, now_);
  }
  void RunTheBusyJob() {
    busy_ = *coordinator_->Submit(ExampleSubmission("busy", {kGroups, 1}), now_);
    EXPECT_TRUE(worker_.Connect(*coordinator_, now_).ok());
    ReceiveUntil([this] { return worker_.running().size() == kGroups; });
    idle_ = *coordinator_->Submit(ExampleSubmission("idle"), now_);
  }
  void ReceiveUntil(const std::function<bool()>& done) {
    const absl::Time limit = absl::Now() + kLimit;
    while (!done() && absl::Now() < limit) {
      worker_.Receive(now_);
      coordinator_->WaitForChange("none", 0, absl::Milliseconds(1));
    }
    EXPECT_TRUE(done());
  }
  void EndOneGroup() { worker_.End(worker_.running().begin()->first, absl::OkStatus(), now_); }

  const std::string folder_;
  Instant now_ = {absl::FromUnixSeconds(1000000), absl::ZeroDuration()};
  std::shared_ptr<GatedStore> store_ = std::make_shared<GatedStore>();
  std::unique_ptr<Coordinator> coordinator_;
  FakeWorker worker_{"w1", kGroups};
  std::string busy_, idle_;
};

// One Write takes an hour. Meanwhile the threads that read workers' streams never block, and heartbeats are answered. A
// new worker is welcomed, a cancelled job stops, and no worker is lost. Users hear after a bounded time that the disk
// does not answer. Once it answers, every change is stored.
TEST_F(CoordinatorStoreTest, ABlockedStoreLosesNoWorker) {
  coordinator_.reset();
  Start(absl::Seconds(1));
  RunTheBusyJob();
  store_->Stop();
  EndOneGroup();
  ASSERT_TRUE(store_->AwaitBlocked(1));

  FakeWorker late("late", 2);
  ASSERT_TRUE(late.Connect(*coordinator_, now_).ok());
  late.Receive(now_);
  EXPECT_TRUE(late.welcomed());
  const int echoes = worker_.echoes();
  for (int second = 1; second <= 3600; ++second) {
    now_ += absl::Seconds(1);
    worker_.Heartbeat(now_);
    late.Heartbeat(now_);
    Heartbeat();
    coordinator_->Tick(now_);
    worker_.Receive(now_);
    late.Receive(now_);
    ASSERT_EQ(worker_.echoes(), echoes + second);
    ASSERT_TRUE(worker_.connected() && late.connected());
  }
  EXPECT_EQ(worker_.unseen(), 1u) << "the end is not stored";
  EXPECT_THAT(std::string(coordinator_->Submit(ExampleSubmission("new"), now_).status().message()),
              HasSubstr("the job store has not answered for 1s"));
  EXPECT_THAT(std::string(coordinator_->Cancel(busy_, now_).status().message()),
              HasSubstr("is told to stop, but the job store has not answered for 1s"));
  worker_.Receive(now_, /*linger=*/true);
  EXPECT_EQ(worker_.stop_reasons().size(), kGroups - 1);
  EXPECT_TRUE(late.started().empty()) << "a start that is not stored";

  store_->Open();
  ReceiveUntil([this] { return worker_.unseen() == 0; });
  EXPECT_EQ(coordinator_->Cancel(busy_, now_)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(coordinator_->Submit(ExampleSubmission("new"), now_).ok());
  for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) EXPECT_TRUE(node.alive()) << node.name();
}

// Cancel waits only until its own change is stored. A log is complete once its last line is written. The writer's other
// work delays neither.
TEST_F(CoordinatorStoreTest, WaitsOnlyForWhatWasThereBefore) {
  RunTheBusyJob();
  store_->Stop();
  EndOneGroup();
  ASSERT_TRUE(store_->AwaitBlocked(1));
  absl::Notification returned;
  std::thread user([&] {
    const absl::StatusOr<v1::JobStatus> cancelled = coordinator_->Cancel(idle_, now_);
    EXPECT_TRUE(cancelled.ok()) << cancelled.status();
    returned.Notify();
  });
  const absl::Time limit = absl::Now() + kLimit;
  while (coordinator_->Status(idle_, now_)->state() != v1::JOB_STATE_CANCELLED && absl::Now() < limit) {
    coordinator_->WaitForChange(idle_, 0, absl::Milliseconds(1));
  }
  EXPECT_FALSE(coordinator_->LogIsComplete(idle_));
  EXPECT_FALSE(returned.HasBeenNotified()) << "it answered before its change was stored";
  // The second Write stores the cancelled job. The third one blocks again, but Cancel does not wait for it.
  store_->LetThrough(1);
  ASSERT_TRUE(store_->AwaitBlocked(1));
  EndOneGroup();
  store_->LetThrough(1);
  EXPECT_TRUE(returned.WaitForNotificationWithTimeout(kLimit));
  user.join();
}

// A new job is stored although others keep the writer busy with changes.
TEST_F(CoordinatorStoreTest, SubmitsWhileOthersWrite) {
  RunTheBusyJob();
  absl::Notification writing, submitted;
  std::thread writer([&] {
    const GroupKey key = worker_.running().begin()->first;
    for (bool silent = true; !submitted.HasBeenNotified(); silent = !silent) {
      worker_.Silence(key, silent, now_);
      worker_.Receive(now_);
      if (!writing.HasBeenNotified()) writing.Notify();
    }
  });
  EXPECT_TRUE(writing.WaitForNotificationWithTimeout(kLimit));
  for (int i = 0; i < 20; ++i) {
    const absl::StatusOr<std::string> id = coordinator_->Submit(ExampleSubmission(absl::StrCat("late", i)), now_);
    EXPECT_TRUE(id.ok()) << id.status();
  }
  submitted.Notify();
  writer.join();
}

// Changes made just before the coordinator ends are stored.
TEST_F(CoordinatorStoreTest, WritesWhatWaitsBeforeItEnds) {
  RunTheBusyJob();
  EndOneGroup();
  coordinator_->Stop();
  coordinator_.reset();
  int finished = 0;
  const absl::StatusOr<StoredJobs> stored = (*JobStore::Open(store_))->Load();
  ASSERT_TRUE(stored.ok());
  for (const GroupRecord& group : stored->jobs.front().groups)
    finished += group.state == v1::GROUP_STATE_FINISHED ? 1 : 0;
  EXPECT_EQ(finished, 1);
}

}  // namespace
}  // namespace hooke
