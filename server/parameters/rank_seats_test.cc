#include "server/parameters/rank_seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "server/parameters/test_center.h"
#include "server/parameters/test_clock.h"

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
      EXPECT_EQ(streams_.back().TryTakeSeat(MakeSender({})), absl::OkStatus());
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
  ASSERT_EQ(other.TryTakeSeat(MakeSender({}, 1)), absl::OkStatus());
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
  ASSERT_EQ(seated.TryTakeSeat(MakeSender({}, 0, 0, 2)), absl::OkStatus());
  RankSeats::Stream earlier(&seats, 4, [] {});
  EXPECT_EQ(earlier.TryTakeSeat(MakeSender({}, 0, 0, 2)), Overtaken());
  RankSeats::Stream replaced(&seats, 6, [] {});
  EXPECT_EQ(replaced.TryTakeSeat(MakeSender({}, 0, 0, 1)),
            absl::AbortedError("start 1 of group 0 has been replaced by start 2; stop"));
  EXPECT_FALSE(ended);
  RankSeats::Stream later(&seats, 3, [] {});
  EXPECT_EQ(later.TryTakeSeat(MakeSender({}, 0, 0, 3)), absl::OkStatus());
  EXPECT_TRUE(ended);
}

// At most four streams of a rank wait. A fifth is refused when its patience is over, although each of the four was told
// to end when the next one came. When one of the four leaves, there is room again.
TEST(RankSeats, FewStreamsWait) {
  const auto clock = std::make_shared<TestClock>();
  RankSeats seats(kPatience, clock);
  Waiting four(&seats, 4);
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), std::nullopt);
  EXPECT_EQ(fifth.give_up(), clock->Now() + kPatience);
  clock->Advance(kPatience);
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})),
            absl::UnavailableError("4 streams of rank 0 of group 0 still wait for a round; try again"));
  EXPECT_THAT(four.ended(), ElementsAre(1, 2, 3, 4));
  RankSeats::Stream other(&seats, 6, [] {});
  EXPECT_EQ(other.TryTakeSeat(MakeSender({}, 0, 1)), absl::OkStatus());
  four.LeaveFirst();
  RankSeats::Stream sixth(&seats, 7, [] {});
  EXPECT_EQ(sixth.TryTakeSeat(MakeSender({})), absl::OkStatus());
}

// If a rank's stream hangs, the rank can connect again, even if its other streams wait. The stream that hangs is ended
// and leaves, which makes room.
TEST(RankSeats, AStreamThatHangsMakesRoom) {
  RankSeats seats(kPatience);
  const Waiting three(&seats, 3);
  bool ended = false;
  std::optional<RankSeats::Stream> fourth;
  fourth.emplace(&seats, 4, [&] { ended = true; });
  ASSERT_EQ(fourth->TryTakeSeat(MakeSender({})), absl::OkStatus());
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), std::nullopt);
  EXPECT_TRUE(ended);
  fourth.reset();
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), absl::OkStatus());
}

// Only one stream waits for a seat, because a later stream ends the wait of an earlier one. An earlier one that comes
// after it is refused at once.
TEST(RankSeats, OnlyTheLastWaitsForASeat) {
  RankSeats seats(kPatience);
  Waiting four(&seats, 4);
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), std::nullopt);
  RankSeats::Stream seventh(&seats, 7, [] {});
  EXPECT_EQ(seventh.TryTakeSeat(MakeSender({})), std::nullopt);
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), Overtaken());
  RankSeats::Stream sixth(&seats, 6, [] {});
  EXPECT_EQ(sixth.TryTakeSeat(MakeSender({})), Overtaken());
  four.LeaveFirst();
  EXPECT_EQ(seventh.TryTakeSeat(MakeSender({})), absl::OkStatus());
}

// After Stop no stream gets a seat, not even one that has asked before.
TEST(RankSeats, Stop) {
  const absl::Status stopping = absl::UnavailableError("this parameter server is stopping; try again");
  RankSeats seats(kPatience);
  Waiting four(&seats, 4);
  RankSeats::Stream fifth(&seats, 5, [] {});
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), std::nullopt);
  seats.Stop();
  four.LeaveFirst();
  EXPECT_EQ(fifth.TryTakeSeat(MakeSender({})), stopping);
  RankSeats::Stream other(&seats, 6, [] {});
  EXPECT_EQ(other.TryTakeSeat(MakeSender({}, 1)), stopping);
}

}  // namespace
}  // namespace hooke
