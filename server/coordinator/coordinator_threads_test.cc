// Many threads call the Coordinator at once, in real time and without gRPC. Made to be run under the thread sanitizer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clocks/instant.h"
#include "job/job_state.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/journal/job_log.h"
#include "server/records/record_store.h"
#include "server/records/records.h"

namespace hooke {
namespace {

constexpr int kWorkers = 2;
constexpr int kUsers = 4;
constexpr int kJobsPerUser = 5;

// Acts as one user, who submits jobs, watches each to its end, and reads its log.
void Use(Coordinator& coordinator, int user, absl::Time deadline) {
  for (int i = 0; i < kJobsPerUser; ++i) {
    const absl::StatusOr<std::string> id =
        coordinator.Submit(ExampleSubmission(absl::StrCat(user, "-", i), {2, 1}), InstantNow());
    ASSERT_TRUE(id.ok()) << id.status();
    if (i == 3) {
      EXPECT_TRUE(coordinator.Cancel(*id, InstantNow()).ok());
    }
    uint64_t seen = 0;
    while (!HasEnded(coordinator.Status(*id, InstantNow())->state())) {
      ASSERT_LT(absl::Now(), deadline) << *id << " does not end";
      seen = coordinator.WaitForChange(*id, seen, absl::Milliseconds(100));
    }
    while (!coordinator.LogIsComplete(*id)) {
      ASSERT_LT(absl::Now(), deadline) << "the log of " << *id << " does not end";
      coordinator.WaitForChange(*id, seen, absl::Milliseconds(1));
    }
    const absl::StatusOr<LogText> log = coordinator.ReadLog(*id, 0, 1 << 20);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_THAT(log->text, testing::HasSubstr("coordinator job "));
  }
}

// Acts as one worker, which finishes every group that it is told to start.
void Work(Coordinator& coordinator, int number, const std::atomic<bool>& stop) {
  FakeWorker worker(absl::StrCat("w", number), 3);
  ASSERT_TRUE(worker.Connect(coordinator, InstantNow()).ok());
  while (!stop) {
    worker.Receive(InstantNow());
    worker.Heartbeat(InstantNow());
    std::vector<std::pair<GroupKey, bool>> running;
    for (const auto& [key, run] : worker.running()) {
      running.emplace_back(key, run.start.group().task() == v1::GroupStart::EVALUATE);
    }
    for (const auto& [key, evaluation] : running) {
      worker.Progress(key, 1, InstantNow());
      if (evaluation) worker.Evaluated(key, 0.9, InstantNow());
      worker.End(key, absl::OkStatus(), InstantNow());
    }
  }
  worker.Disconnect(InstantNow());
}

// Users, workers, a server and the ticker at once: every job ends, and every log has its last line.
TEST(CoordinatorThreadsTest, EverybodyAtOnce) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/everybody_at_once");
  std::filesystem::remove_all(folder);
  CoordinatorOptions options;
  options.store = std::make_shared<InMemoryRecordStore>();
  options.log = std::make_shared<JobLog>(*JobLog::Open({folder}));
  options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  const std::unique_ptr<Coordinator> coordinator = *Coordinator::Create(std::move(options), InstantNow());
  const absl::Time deadline = absl::Now() + absl::Seconds(40);
  std::atomic<bool> stop = false;
  std::vector<std::thread> daemons;
  daemons.reserve(kWorkers + 1);
  for (int i = 0; i < kWorkers; ++i) daemons.emplace_back([&, i] { Work(*coordinator, i, stop); });
  daemons.emplace_back([&] {
    while (!stop) {
      EXPECT_TRUE(coordinator->ServerHeartbeat(FakeServer("s:1"), InstantNow()).ok());
      AnswerDials(*coordinator, InstantNow());
      coordinator->Tick(InstantNow());
      EXPECT_LE(coordinator->List(SIZE_MAX, InstantNow()).jobs.size(), static_cast<size_t>(kUsers * kJobsPerUser));
      coordinator->WaitForChange("none", 0, absl::Milliseconds(5));
    }
  });
  std::vector<std::thread> users;
  users.reserve(kUsers);
  for (int i = 0; i < kUsers; ++i) users.emplace_back([&, i] { Use(*coordinator, i, deadline); });
  for (std::thread& user : users) user.join();
  stop = true;
  for (std::thread& daemon : daemons) daemon.join();
  EXPECT_EQ(coordinator->List(SIZE_MAX, InstantNow()).jobs.size(), static_cast<size_t>(kUsers * kJobsPerUser));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hooke
