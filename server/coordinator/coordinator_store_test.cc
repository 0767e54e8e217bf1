// Who waits for the Coordinator's store, and for what: a caller waits for what it changed itself, though others never
// stop changing things.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/example_job.h"
#include "server/coordinator/fake_worker.h"
#include "server/coordinator/job_log.h"
#include "server/coordinator/job_store.h"

namespace hooke {
namespace {

constexpr uint32_t kGroups = 60;
constexpr absl::Duration kLimit = absl::Seconds(20);

// Calls the test before each Put, in the thread that writes.
class WatchedStore : public InMemoryJobStore {
 public:
  absl::Status Put(absl::Span<const JobRecord> jobs) override {
    if (before_put) before_put();
    return InMemoryJobStore::Put(jobs);
  }

  std::function<void()> before_put;
};

// A job with many groups, each of which can end once: every end is one more thing to store.
class CoordinatorStoreTest : public testing::Test {
 protected:
  CoordinatorStoreTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    CoordinatorOptions options;
    options.store = store_;
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    coordinator_ = *Coordinator::Create(std::move(options), now_);
    v1::ServerHeartbeatRequest server;
    server.set_address("b:1");
    EXPECT_TRUE(coordinator_->ServerHeartbeat(server, now_).ok());
    busy_ = *coordinator_->Submit(ExampleSubmission("busy", {kGroups, 1}), now_);
    EXPECT_TRUE(worker_.Connect(*coordinator_, now_).ok());
    worker_.Receive(now_);
    EXPECT_EQ(worker_.running().size(), kGroups);
    idle_ = *coordinator_->Submit(ExampleSubmission("idle"), now_);
  }
  ~CoordinatorStoreTest() override { std::filesystem::remove_all(folder_); }

  size_t left() const { return worker_.running().size(); }
  void EndOneGroup() {
    if (left() > 0) worker_.End(worker_.running().begin()->first, absl::OkStatus(), now_);
  }

  const std::string folder_;
  const absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::shared_ptr<WatchedStore> store_ = std::make_shared<WatchedStore>();
  std::unique_ptr<Coordinator> coordinator_;
  FakeWorker worker_{"w1", kGroups};
  std::string busy_, idle_;
};

// A caller that became the writer leaves after a while, though each batch finds the next one waiting; Ticks do the
// rest.
TEST_F(CoordinatorStoreTest, NobodyWritesForOthersForEver) {
  store_->before_put = [this] { EndOneGroup(); };
  const absl::StatusOr<v1::JobStatus> cancelled = coordinator_->Cancel(idle_, now_);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(left(), kGroups - Coordinator::kBatchesPerCall);
  while (left() > 0) {
    const size_t before = left();
    coordinator_->Tick(now_);
    ASSERT_LT(left(), before);
  }
  coordinator_->Tick(now_);
  EXPECT_EQ(worker_.unseen(), kGroups);
  worker_.Receive(now_);
  EXPECT_EQ(worker_.unseen(), 0u);
}

// A change that another thread stores is waited for no longer than until it is stored, and a log until its last line is
// written, whatever the writer is busy with by then.
TEST_F(CoordinatorStoreTest, WaitsOnlyForWhatWasThereBefore) {
  absl::Notification writing, returned;
  int puts = 0;
  store_->before_put = [&] {
    EndOneGroup();
    ++puts;
    if (puts == 1) {
      writing.Notify();
      // Into the second batch comes what is cancelled now.
      const absl::Time limit = absl::Now() + kLimit;
      while (coordinator_->Status(idle_, now_)->state() != v1::JOB_STATE_CANCELLED && absl::Now() < limit) {
        coordinator_->WaitForChange(idle_, 0, absl::Milliseconds(1));
      }
    }
    if (puts == 3) {
      EXPECT_TRUE(returned.WaitForNotificationWithTimeout(kLimit));
    }
  };
  std::thread writer([this] { EndOneGroup(); });
  EXPECT_TRUE(writing.WaitForNotificationWithTimeout(kLimit));
  EXPECT_FALSE(coordinator_->LogIsComplete(idle_));
  const absl::StatusOr<v1::JobStatus> cancelled = coordinator_->Cancel(idle_, now_);
  EXPECT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_TRUE(coordinator_->LogIsComplete(idle_));
  EXPECT_THAT(coordinator_->ReadLog(idle_, 0, 1 << 20)->text, testing::HasSubstr("cancelled by the user"));
  returned.Notify();
  writer.join();
}

// A new job gets its turn to be stored between two batches of others.
TEST_F(CoordinatorStoreTest, SubmitsWhileOthersWrite) {
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

}  // namespace
}  // namespace hooke
