#include "client/watch/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordingScreen : public WatchScreen {
 public:
  void Show(const v1::JobStatus& job, absl::Time now) override {
    states.push_back(job.state());
    last_now = now;
    if (on_show) on_show();
  }
  void Away(const v1::JobStatus* job, absl::Time since, absl::Time now) override {
    events.push_back(job == nullptr ? "away, nothing known" : "away");
    EXPECT_LE(since, now);
    away_since = since;
    if (on_away) on_away();
  }
  void Back(absl::Time since, absl::Time now) override {
    events.push_back("back");
    EXPECT_LT(since, now);
    EXPECT_EQ(since, away_since);
  }

  std::vector<v1::JobState> states;
  absl::Time last_now;
  std::vector<std::string> events;  // The calls of Away ("away") and Back ("back").
  absl::Time away_since;
  std::function<void()> on_show;
  std::function<void()> on_away;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    options_.silence = absl::Milliseconds(200);
    options_.retry = absl::Milliseconds(50);
    options_.poll = absl::Milliseconds(20);
    options_.patience = absl::Seconds(20);
  }

  std::unique_ptr<CoordinatorClient> Connect(const std::string& address) {
    return *CoordinatorClient::Connect(address, absl::Seconds(10));
  }

  WatchOptions options_;
  RecordingScreen screen_;
};

// Every status is shown, and the last one is returned.
TEST_F(WatchTest, ShowsEveryStatusAndReturnsTheLast) {
  FakeCoordinatorService coordinator;
  coordinator.jobs["fashion-1"] = {RunningJob("fashion-1"), RunningJob("fashion-1"), SucceededJob("fashion-1")};
  FakeListener listener(coordinator);
  const auto client = Connect(listener.address());
  options_.silence = absl::Seconds(20);  // Long, because a busy machine is not a silent coordinator.
  const absl::StatusOr<v1::JobStatus> job = FollowJob(*client, "fashion-1", screen_, nullptr, options_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(screen_.states, ElementsAre(v1::JOB_STATE_RUNNING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  EXPECT_THAT(screen_.events, testing::IsEmpty());
}

// A lost coordinator is reported once. After its restart, watching goes on to the job's end.
TEST_F(WatchTest, GoesOnAfterARestartOfTheCoordinator) {
  FakeCoordinatorService before;
  before.jobs["fashion-1"] = {RunningJob("fashion-1")};
  FakeCoordinatorService after;
  after.jobs["fashion-1"] = {SucceededJob("fashion-1")};
  auto listener = std::make_unique<FakeListener>(before);
  const int port = listener->port();
  const auto client = Connect(listener->address());
  screen_.on_show = [&] { listener.reset(); };
  screen_.on_away = [&] { listener = std::make_unique<FakeListener>(after, port); };
  options_.silence = absl::Seconds(20);  // Long, because the refused connection alone must be noticed.
  const absl::StatusOr<v1::JobStatus> job = FollowJob(*client, "fashion-1", screen_, nullptr, options_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(screen_.events, ElementsAre("away", "back"));
}

// A coordinator whose connection stands but which sends nothing counts as away, too. The stream is opened anew.
TEST_F(WatchTest, ASilentStreamIsOpenedAnew) {
  FakeCoordinatorService coordinator;
  coordinator.jobs["fashion-1"] = {RunningJob("fashion-1")};
  FakeListener listener(coordinator);
  options_.silence = absl::Seconds(2);
  const auto client = Connect(listener.address());
  screen_.on_away = [&] {
    absl::MutexLock lock(&coordinator.mutex);
    coordinator.jobs["fashion-1"] = {SucceededJob("fashion-1")};
  };
  const absl::StatusOr<v1::JobStatus> job = FollowJob(*client, "fashion-1", screen_, nullptr, options_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(screen_.events, ElementsAre("away", "back"));
  absl::MutexLock lock(&coordinator.mutex);
  EXPECT_GE(coordinator.watches, 2);
}

// When `patience` is over, the message says that the job may go on, and how to watch again.
TEST_F(WatchTest, GivesUpAfterPatience) {
  FakeCoordinatorService coordinator;
  coordinator.jobs["fashion-1"] = {RunningJob("fashion-1")};
  auto listener = std::make_unique<FakeListener>(coordinator);
  const auto client = Connect(listener->address());
  screen_.on_show = [&] { listener.reset(); };
  options_.patience = absl::Milliseconds(500);
  const absl::Status status = FollowJob(*client, "fashion-1", screen_, nullptr, options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("giving up (--patience waits longer). Job fashion-1 may go on; `hooke watch fashion-1` looks again"));
}

// A jump of the clock, as after an hour of a laptop's sleep, does not use up the patience.
TEST_F(WatchTest, AJumpOfTheClockIsNoLostPatience) {
  FakeCoordinatorService coordinator;
  coordinator.jobs["fashion-1"] = {RunningJob("fashion-1")};
  FakeListener listener(coordinator);
  const auto client = Connect(listener.address());
  absl::Duration jump;
  options_.clock = [&jump] { return absl::Now() + jump; };
  options_.silence = absl::Seconds(2);
  screen_.on_show = [&jump] { jump = absl::Hours(1); };
  screen_.on_away = [&] {
    absl::MutexLock lock(&coordinator.mutex);
    coordinator.jobs["fashion-1"] = {SucceededJob("fashion-1")};
  };
  const absl::StatusOr<v1::JobStatus> job = FollowJob(*client, "fashion-1", screen_, nullptr, options_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(screen_.events, ElementsAre("away", "back"));
}

// While the coordinator sends nothing new, the screen is redrawn, so that the time of a silence grows.
TEST_F(WatchTest, RedrawsWhileNothingIsHeard) {
  FakeCoordinatorService coordinator;
  coordinator.jobs["fashion-1"] = {RunningJob("fashion-1")};
  FakeListener listener(coordinator);
  const auto client = Connect(listener.address());
  options_.redraw = absl::Milliseconds(40);
  options_.silence = absl::Seconds(20);
  options_.patience = absl::Milliseconds(400);
  EXPECT_FALSE(FollowJob(*client, "fashion-1", screen_, nullptr, options_).ok());
  EXPECT_GE(screen_.states.size(), 2u);
  EXPECT_GT(screen_.last_now, absl::FromUnixMillis(RunningJob("fashion-1").now_unix_ms()));
}

// Watching a job that does not exist ends at once.
TEST_F(WatchTest, NoSuchJob) {
  FakeCoordinatorService coordinator;
  FakeListener listener(coordinator);
  const auto client = Connect(listener.address());
  EXPECT_EQ(FollowJob(*client, "x-1", screen_, nullptr, options_).status(), absl::NotFoundError("no job x-1"));
}

}  // namespace
}  // namespace hooke
