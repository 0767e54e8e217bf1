#include "worker/exchange/exchange_deadline.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
const ExchangePatience kPatience = {absl::Seconds(5), absl::Seconds(1), absl::Seconds(20), absl::Milliseconds(100)};

// After each answer the server again has the time `silence` for the next one, within the limit of the whole exchange.
TEST(ExchangeDeadline, IsOfSilence) {
  EXPECT_EQ(ExchangeDeadline(kPatience, {kStart, {}, false}), kStart + absl::Seconds(5));
  for (const int seconds : {1, 4, 9, 15}) {
    const absl::Time answered = kStart + absl::Seconds(seconds);
    EXPECT_EQ(ExchangeDeadline(kPatience, {kStart, answered, false}), answered + absl::Seconds(5));
    EXPECT_EQ(ExchangeDeadline(kPatience, {kStart, answered, true}), answered + absl::Seconds(5)) << "it has answered";
  }
  EXPECT_EQ(ExchangeDeadline(kPatience, {kStart, kStart + absl::Seconds(16), false}), kStart + absl::Seconds(20));
}

// A server that failed the previous exchange gets only the short time for its first answer.
TEST(ExchangeDeadline, ASuspectMustAnswerSoon) {
  EXPECT_EQ(ExchangeDeadline(kPatience, {kStart, {}, true}), kStart + absl::Seconds(1));
}

// A server that refuses connections is given up after ExchangePatience::unreachable, counted from the start or from the
// last answer. By default that is a tenth of a second. The last exchange waits for it as long as for a silent one.
TEST(ExchangeDeadline, ARefusedConnectionIsGivenUpSoon) {
  EXPECT_FALSE(GivesUpUnreachable(kPatience, {kStart, {}, false}, kStart + absl::Milliseconds(99)));
  EXPECT_TRUE(GivesUpUnreachable(kPatience, {kStart, {}, false}, kStart + absl::Milliseconds(100)));
  EXPECT_FALSE(GivesUpUnreachable(kPatience, {kStart, kStart + absl::Seconds(3), false}, kStart + absl::Seconds(3.09)));
  EXPECT_TRUE(GivesUpUnreachable(kPatience, {kStart, kStart + absl::Seconds(3), false}, kStart + absl::Seconds(3.1)));
  GroupPatience group = {absl::Seconds(5), absl::ZeroDuration(), absl::Seconds(30), 1, 1, false};
  EXPECT_TRUE(PatienceOf(group).skips_absent);
  EXPECT_FALSE(PatienceOf(group).awaits_quorum);
  EXPECT_TRUE(GivesUpUnreachable(PatienceOf(group), {kStart, {}, false}, kStart + absl::Milliseconds(100)));
  EXPECT_FALSE(GivesUpUnreachable(PatienceOf(group), {kStart, {}, false}, kStart + absl::Milliseconds(99)));
  group.grace = absl::Seconds(2);
  EXPECT_FALSE(GivesUpUnreachable(PatienceOf(group), {kStart, {}, false}, kStart + absl::Seconds(2)))
      << "in rounds a missed exchange costs more than the wait";
  group.last = true;
  group.awaits_quorum = true;
  EXPECT_FALSE(PatienceOf(group).skips_absent);
  EXPECT_TRUE(PatienceOf(group).awaits_quorum);
  EXPECT_FALSE(GivesUpUnreachable(PatienceOf(group), {kStart, {}, false}, kStart + absl::Seconds(19)));
}

// 64 MiB at 100 Mbit/s take 5.4 seconds each way, more than --exchange-timeout. Answers keep coming, so the exchange
// goes on.
TEST(ExchangeDeadline, ASlowLinkCarriesALargeModel) {
  const GroupPatience group = {absl::Seconds(5), absl::ZeroDuration(), absl::Seconds(30), 1, 16 << 20, false};
  const ExchangePatience patience = PatienceOf(group);
  absl::Time now = kStart;
  for (int message = 0; message < 256; ++message) {  // Each has 256 KiB and is answered before the next.
    const absl::Time answered = now + absl::Milliseconds(42);
    ASSERT_GT(ExchangeDeadline(patience, {kStart, now, false}), answered) << message;
    now = answered;
  }
}

// An exchange ends before the ranks that wait for it give up. The only rank of a group also gets the time that its
// values take.
TEST(ExchangeDeadline, EndsBeforeTheOtherRanksGiveUp) {
  GroupPatience group = {absl::Seconds(5), absl::Seconds(3), absl::Seconds(30), 2, 1 << 30, false};
  EXPECT_EQ(PatienceOf(group).whole, absl::Seconds(20));
  EXPECT_EQ(PatienceOf(group).silence, absl::Seconds(8));
  EXPECT_EQ(PatienceOf(group).first, absl::Seconds(3.5));
  group.exchange = absl::Minutes(10);
  EXPECT_EQ(PatienceOf(group).silence, absl::Seconds(15));
  group.last = true;
  EXPECT_EQ(PatienceOf(group).silence, absl::Seconds(20));
  EXPECT_EQ(PatienceOf(group).first, absl::Seconds(20));
  group.ranks = 1;
  EXPECT_EQ(PatienceOf(group).whole, absl::Seconds(20) + 2 * TransferTime(1 << 30));
}

}  // namespace
}  // namespace hooke
