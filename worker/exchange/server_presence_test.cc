#include "worker/exchange/server_presence.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hooke {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

constexpr double kNever = -1;

// One event, and the state that must follow from it.
struct Event {
  // Names what happened. "complete", "partial", "silent" and "may wait" are ends of an exchange. "answers" and "no
  // answer" are ends of a Locate call.
  std::string what;
  double now = 0;
  bool skipped = false;
  double next_question = kNever;
};

void Follow(const std::vector<Event>& events) {
  ServerPresence presence;
  EXPECT_FALSE(presence.skipped());
  EXPECT_EQ(presence.next_question(), absl::InfiniteFuture());
  for (const Event& event : events) {
    SCOPED_TRACE(testing::Message() << event.what << " at " << event.now);
    const absl::Time began = At(event.now) - absl::Seconds(1);
    if (event.what == "complete") presence.Ended(ExchangeEnd::kComplete, began, At(event.now));
    if (event.what == "partial") presence.Ended(ExchangeEnd::kPartial, began, At(event.now));
    if (event.what == "silent") presence.Ended(ExchangeEnd::kSilent, began, At(event.now));
    if (event.what == "may wait") presence.Ended(ExchangeEnd::kMayWait, began, At(event.now));
    if (event.what == "answers") presence.Asked(true, At(event.now));
    if (event.what == "no answer") presence.Asked(false, At(event.now));
    EXPECT_EQ(presence.skipped(), event.skipped);
    const absl::Time next = event.next_question == kNever ? absl::InfiniteFuture() : At(event.next_question);
    EXPECT_EQ(presence.next_question(), next);
  }
}

TEST(ServerPresence, IsAskedUntilItAnswers) {
  Follow({{"complete", 1, false, kNever},
          {"silent", 6, true, 6},
          {"no answer", 7, true, 7.5},
          {"no answer", 8.5, true, 9},
          {"answers", 9.25, false, kNever},
          {"complete", 10, false, kNever},
          {"silent", 20, true, 20}});
}

// A server may answer Locate calls but no exchanges. Exchanges then try it more and more rarely, at last every 16
// seconds.
TEST(ServerPresence, PromisesThatAreNotKeptCostLess) {
  Follow({{"silent", 10, true, 10},
          {"answers", 10, false, kNever},
          {"silent", 20, true, 20.5},
          {"answers", 20.5, false, kNever},
          {"silent", 30, true, 31},
          {"silent", 40, true, 42},
          {"silent", 50, true, 54},
          {"silent", 60, true, 68},
          {"silent", 70, true, 86},
          {"silent", 80, true, 96},
          {"answers", 96, false, kNever},
          {"complete", 97, false, kNever},
          {"silent", 100, true, 100}});
}

// After an exchange that a slow server answered in part, its next Locate call is due at once, however often that
// happens.
TEST(ServerPresence, SlowIsNotAway) {
  Follow({{"partial", 10, true, 10},
          {"answers", 10, false, kNever},
          {"partial", 20, true, 20},
          {"answers", 20, false, kNever},
          {"silent", 30, true, 30},
          {"silent", 40, true, 40.5},
          {"partial", 50, true, 50}});
}

// After an exchange that lacked a quorum, the next Locate call is due at once, and the next exchange tries the server.
// That holds however often it happens. The server is not reported absent.
TEST(ServerPresence, WaitingForOtherGroupsIsNotAway) {
  ServerPresence presence;
  for (int i = 0; i < 100; ++i) {
    presence.Ended(ExchangeEnd::kMayWait, At(i), At(i + 1));
    EXPECT_EQ(presence.next_question(), At(i + 1));
    EXPECT_EQ(presence.absent_since(), std::nullopt);
    presence.Asked(true, At(i + 1));
    EXPECT_FALSE(presence.skipped());
    EXPECT_EQ(presence.absent_since(), std::nullopt);
  }
  // The server was killed, so it answers no Locate call either.
  presence.Ended(ExchangeEnd::kMayWait, At(100), At(101));
  presence.Asked(false, At(102));
  EXPECT_TRUE(presence.skipped());
  EXPECT_EQ(presence.absent_since(), At(0));
  presence.Asked(true, At(103));
  EXPECT_EQ(presence.absent_since(), std::nullopt);
}

// A server that answers Locate calls but no exchanges stays absent between two exchanges.
TEST(ServerPresence, IsAbsentUntilItKeepsItsPromise) {
  ServerPresence presence;
  presence.Ended(ExchangeEnd::kSilent, At(1), At(2));
  EXPECT_EQ(presence.absent_since(), At(1));
  presence.Asked(true, At(3));
  EXPECT_EQ(presence.absent_since(), std::nullopt);
  for (int i = 4; i < 10; ++i) {
    presence.Ended(ExchangeEnd::kSilent, At(i), At(i));
    EXPECT_EQ(presence.absent_since(), At(1));
    presence.Asked(true, At(i));
    EXPECT_EQ(presence.absent_since(), At(1));
  }
  presence.Ended(ExchangeEnd::kComplete, At(10), At(11));
  EXPECT_EQ(presence.absent_since(), std::nullopt);
}

TEST(ServerPresence, SaysSinceWhen) {
  ServerPresence presence;
  EXPECT_EQ(presence.absent_since(), std::nullopt);
  presence.Ended(ExchangeEnd::kSilent, At(1), At(6));
  EXPECT_EQ(presence.absent_since(), At(1));
  presence.Asked(true, At(7));
  EXPECT_TRUE(presence.suspect());
  presence.Ended(ExchangeEnd::kSilent, At(8), At(9));
  EXPECT_EQ(presence.absent_since(), At(1));
  presence.Ended(ExchangeEnd::kComplete, At(10), At(11));
  EXPECT_EQ(presence.absent_since(), std::nullopt);
  EXPECT_FALSE(presence.suspect());
  for (int i = 0; i < 100; ++i) presence.Ended(ExchangeEnd::kSilent, At(20), At(21));
  EXPECT_EQ(presence.next_question(), At(21 + 16));
}

}  // namespace
}  // namespace hooke
