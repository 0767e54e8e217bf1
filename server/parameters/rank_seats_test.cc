#include "server/parameters/rank_seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(30);

const absl::Status& Overtaken() {
  static const absl::Status overtaken = absl::UnavailableError("a later stream of this rank came first");
  return overtaken;
}

// Streams of rank 0 of group 0 that stay registered until LeaveFirst, as if they waited for other groups.
class Waiting {
 public:
  Waiting(RankSeats* seats, uint64_t count) {
    for (uint64_t number = 1; number <= count; ++number) {
      streams_.emplace_back(seats, number, [this, number] { ended_.push_back(number); });
      EXPECT_TRUE(streams_.back().TakeSeat(MakeSender({})).ok());
    }
  }
  void LeaveFirst() { streams_.pop_front(); }
  const std::vector<uint64_t>& ended() const { return ended_; }

 private:
  std::vector<uint64_t> ended_;
  std::deque<RankSeats::Stream> streams_;
};

// A rank's next stream ends the previous one, once. Streams of other ranks stay.
TEST(RankSeats, TheNextStreamEndsTheOneBefore) {
  RankSeats seats(kPatience);
  bool other_ended = false;
  RankSeats::Stream other(&seats, 9, [&] { other_ended = true; });
  ASSERT_TRUE(other.TakeSeat(MakeSender({}, 1)).ok());
  const Waiting streams(&seats, 3);
  EXPECT_THAT(streams.ended(), ElementsAre(1, 2));
  EXPECT_FALSE(other_ended);
}

// A stream that is earlier than the one with the seat is refused. So is a stream of a replaced incarnation. Neither
// ends another stream. A stream of a later incarnation gets the seat.
TEST(RankSeats, WhoCameEarlierIsRefused) {
  RankSeats seats(kPatience);
  bool ended = false;
  RankSeats::Stream seated(&seats, 5, [&] { ended = true; });
  ASSERT_TRUE(seated.TakeSeat(MakeSender({}, 0, 0, 2)).ok());
  RankSeats::Stream earlier(&seats, 4, [] {});
  EXPECT_EQ(earlier.TakeSeat(MakeSender({}, 0, 0, 2)), Overtaken());
  RankSeats::Stream replaced(&seats, 6, [] {});
  EXPECT_EQ(replaced.TakeSeat(MakeSender({}, 0, 0, 1)),
            absl::AbortedError("start 1 of group 0 has been replaced by start 2; stop"));
  EXPECT_FALSE(ended);
  RankSeats::Stream later(&seats, 3, [] {});
  EXPECT_TRUE(later.TakeSeat(MakeSender({}, 0, 0, 3)).ok());
  EXPECT_TRUE(ended);
}

// At most four streams of a rank wait. A fifth is refused, although each of the four was told to end when the next one
// came. When one of the four leaves, there is room again.
TEST(RankSeats, FewStreamsWait) {
  RankSeats seats(absl::Milliseconds(20));
  Waiting four(&seats, 4);
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TakeSeat(MakeSender({})),
            absl::UnavailableError("4 streams of rank 0 of group 0 still wait for a round; try again"));
  EXPECT_THAT(four.ended(), ElementsAre(1, 2, 3, 4));
  RankSeats::Stream other(&seats, 6, [] {});
  EXPECT_TRUE(other.TakeSeat(MakeSender({}, 0, 1)).ok());
  four.LeaveFirst();
  RankSeats::Stream sixth(&seats, 7, [] {});
  EXPECT_TRUE(sixth.TakeSeat(MakeSender({})).ok());
}

// If a rank's stream hangs, the rank can connect again, even if its other streams wait. The stream that hangs is ended
// and leaves, which makes room.
TEST(RankSeats, AStreamThatHangsMakesRoom) {
  RankSeats seats(kPatience);
  Waiting three(&seats, 3);
  absl::Notification seated;
  std::thread hanging([&] {
    absl::Notification ended;
    RankSeats::Stream fourth(&seats, 4, [&] { ended.Notify(); });
    EXPECT_TRUE(fourth.TakeSeat(MakeSender({})).ok());
    seated.Notify();
    EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kPatience));
  });
  seated.WaitForNotification();
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_TRUE(fifth.TakeSeat(MakeSender({})).ok());
  hanging.join();
}

// Only one stream waits for a seat, because a later stream ends the wait of an earlier one.
TEST(RankSeats, OnlyTheLastWaitsForASeat) {
  RankSeats seats(kPatience);
  Waiting four(&seats, 4);
  std::thread last([&] {
    RankSeats::Stream sixth(&seats, 6, [] {});
    EXPECT_TRUE(sixth.TakeSeat(MakeSender({})).ok());
  });
  // The fifth stream is refused whether it comes before or after the sixth. The sixth stream is the only possible
  // reason for the refusal, because no stream leaves meanwhile.
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TakeSeat(MakeSender({})), Overtaken());
  four.LeaveFirst();
  last.join();
}

// Stop ends a wait for a seat, and no stream gets a seat afterwards.
TEST(RankSeats, Stop) {
  const absl::Status stopping = absl::UnavailableError("this parameter server is stopping; try again");
  RankSeats seats(kPatience);
  const Waiting four(&seats, 4);
  std::thread waiting([&] {
    RankSeats::Stream fifth(&seats, 5, [] {});
    EXPECT_EQ(fifth.TakeSeat(MakeSender({})), stopping);
  });
  seats.Stop();
  waiting.join();
  RankSeats::Stream other(&seats, 6, [] {});
  EXPECT_EQ(other.TakeSeat(MakeSender({}, 1)), stopping);
}

}  // namespace
}  // namespace hooke
