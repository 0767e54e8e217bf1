#include "server/parameters/exchange_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "server/parameters/test_clock.h"

namespace hooke {
namespace {

using testing::ElementsAre;

// A time falls into the first bucket whose bound is not below it, bytes and times add up, and the other group stays
// unheard.
TEST(ExchangeMeterTest, CountsAnswers) {
  const auto clock = std::make_shared<TestClock>();
  ExchangeMeter meter(2, clock);
  for (const absl::Duration took : {absl::Microseconds(100), absl::Microseconds(101), absl::Seconds(11)}) {
    const absl::Time arrived = meter.Now();
    clock->Advance(took);
    meter.Answered({1, arrived, 10, 20});
  }
  clock->Advance(absl::Seconds(3));
  const ExchangeCounts counts = meter.Read();
  EXPECT_THAT(counts.answers, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
  EXPECT_EQ(counts.answer_time, absl::Seconds(11) + absl::Microseconds(201));
  EXPECT_EQ(counts.received_bytes, 30u);
  EXPECT_EQ(counts.sent_bytes, 60u);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_THAT(counts.idle, ElementsAre(std::nullopt, absl::Seconds(3)));
}

// Staleness has a bucket for 0 and one for all that is large. Refusals and rounds are counted apart.
TEST(ExchangeMeterTest, CountsStalenessRoundsAndRefusals) {
  ExchangeMeter meter(1, std::make_shared<TestClock>());
  for (const uint64_t staleness : {0, 0, 3, 128, 129}) meter.AppliedAlone(staleness);
  meter.AppliedRound();
  meter.Refused();
  meter.Refused();
  const ExchangeCounts counts = meter.Read();
  EXPECT_THAT(counts.staleness, ElementsAre(2, 0, 0, 1, 0, 0, 0, 0, 1, 1));
  EXPECT_EQ(counts.staleness_updates, 260u);
  EXPECT_EQ(counts.rounds, 1u);
  EXPECT_EQ(counts.refused, 2u);
}

// A later generation of a job counts on, and knows nothing of the groups before.
TEST(ExchangeMeterTest, GoesOnFromAnotherMeter) {
  const auto clock = std::make_shared<TestClock>();
  ExchangeMeter before(2, clock);
  const absl::Time arrived = before.Now();
  clock->Advance(absl::Seconds(11));
  before.Answered({1, arrived, 10, 20});
  before.AppliedAlone(3);
  before.AppliedRound();
  before.Refused();
  ExchangeMeter meter(1, clock);
  meter.AppliedAlone(3);
  meter.AddCounts(before.Read());
  const ExchangeCounts counts = meter.Read();
  EXPECT_THAT(counts.answers, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
  EXPECT_EQ(counts.answer_time, absl::Seconds(11));
  EXPECT_EQ(counts.received_bytes, 10u);
  EXPECT_EQ(counts.sent_bytes, 20u);
  EXPECT_THAT(counts.staleness, ElementsAre(0, 0, 0, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(counts.staleness_updates, 6u);
  EXPECT_EQ(counts.rounds, 1u);
  EXPECT_EQ(counts.refused, 1u);
  EXPECT_THAT(counts.idle, ElementsAre(std::nullopt));
}

}  // namespace
}  // namespace hooke
