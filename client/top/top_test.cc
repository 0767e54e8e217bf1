// Tests the loop of `hooke top` against a scripted coordinator on a real port.
#include "client/top/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "client/fake_servers.h"

namespace hooke {
namespace {

class TopTest : public ::testing::Test {
 protected:
  TopTest() {
    coordinator_.jobs["fashion-1"] = {RunningJob("fashion-1")};
    listener_ = std::make_unique<FakeListener>(coordinator_);
    client_ = *CoordinatorClient::Connect(listener_->address(), absl::Seconds(10));
    client_->LimitCalls(absl::Seconds(5));
    options_.interval = absl::Milliseconds(20);
  }

  Interrupts interrupts_;  // Before all threads.
  FakeCoordinatorService coordinator_;
  std::unique_ptr<FakeListener> listener_;
  std::unique_ptr<CoordinatorClient> client_;
  TopOptions options_;
};

// `top` shows as many pictures as are asked for. The first picture has rates only if `top` waits for a second look.
TEST_F(TopTest, Count) {
  for (const bool rates_first : {false, true}) {
    options_.count = 3;
    options_.rates_first = rates_first;
    std::vector<bool> has_before;
    EXPECT_TRUE(RunTop(*client_, interrupts_, options_, [&](const TopState& state, absl::Time) {
                  EXPECT_EQ(state.look.jobs.jobs_size(), 1);
                  has_before.push_back(state.before.has_value());
                }).ok());
    EXPECT_EQ(has_before, std::vector<bool>({rates_first, true, true}));
  }
}

// Rates come from two looks at the cluster. With time enough, the older look is at least the window old.
TEST_F(TopTest, Window) {
  options_.count = 30;
  options_.window = absl::Milliseconds(100);
  absl::Duration longest;
  EXPECT_TRUE(RunTop(*client_, interrupts_, options_, [&](const TopState& state, absl::Time) {
                if (state.before.has_value()) longest = state.look.at - state.before->at;
              }).ok());
  EXPECT_GE(longest, absl::Milliseconds(100));
}

// While the coordinator is away, `top` shows the last state and the reason. When the coordinator is back, new states
// follow.
TEST_F(TopTest, CoordinatorGoesAndComesBack) {
  const int port = listener_->port();
  int pictures = 0;
  bool was_away = false, came_back = false;
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  const absl::Status status = RunTop(*client_, interrupts_, options_, [&](const TopState& state, absl::Time now) {
    if (++pictures == 2) listener_.reset();
    if (state.away() && !was_away) {
      was_away = true;
      EXPECT_EQ(state.look.jobs.jobs_size(), 1);
      EXPECT_NE(state.trouble, "");
      EXPECT_LE(state.away_since, now);
      listener_ = std::make_unique<FakeListener>(coordinator_, port);
    }
    came_back = was_away && !state.away();
    if (came_back || absl::Now() > limit) raise(SIGINT);
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(was_away);
  EXPECT_TRUE(came_back);
}

// If the coordinator did not answer before the last picture, or at the first look, RunTop returns UNAVAILABLE.
TEST_F(TopTest, EndsWithoutTheCoordinator) {
  options_.count = 3;
  EXPECT_TRUE(absl::IsUnavailable(
      RunTop(*client_, interrupts_, options_, [&](const TopState&, absl::Time) { listener_.reset(); })));
  int pictures = 0;
  EXPECT_TRUE(
      absl::IsUnavailable(RunTop(*client_, interrupts_, options_, [&](const TopState&, absl::Time) { ++pictures; })));
  EXPECT_EQ(pictures, 0);
}

}  // namespace
}  // namespace hooke
