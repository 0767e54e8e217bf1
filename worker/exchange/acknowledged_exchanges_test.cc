#include "worker/exchange/acknowledged_exchanges.h"

#include "gtest/gtest.h"

namespace hooke {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// Returns a hundred acknowledged exchanges: one every 16 steps and every 0.1 s, up to step 1600.
AcknowledgedExchanges AHundred() {
  AcknowledgedExchanges exchanges;
  for (uint64_t i = 1; i <= 100; ++i) exchanges.Note(16 * i, At(0.1 * static_cast<double>(i)));
  return exchanges;
}

TEST(AcknowledgedExchanges, CountsWhatComesAfterTheSnapshot) {
  struct Case {
    uint64_t sequence;
    uint64_t exchanges;
    double seconds;
  };
  for (const Case& each : {Case{1600, 0, 0}, Case{1700, 0, 0}, Case{1584, 1, 0.1}, Case{1590, 1, 0.1},
                           Case{1600 - 16 * 37, 37, 3.7}, Case{16, 99, 9.9}, Case{0, 100, 9.9}}) {
    const Setback setback = AHundred().GoBack(each.sequence, 1600);
    EXPECT_EQ(setback.exchanges, each.exchanges) << each.sequence;
    EXPECT_NEAR(absl::ToDoubleSeconds(setback.time), each.seconds, 1e-6) << each.sequence;
    EXPECT_FALSE(setback.more);
  }
  EXPECT_EQ(AcknowledgedExchanges().GoBack(0, 5).exchanges, 0u);
}

// An exchange that was reported lost is not reported again.
TEST(AcknowledgedExchanges, ForgetsWhatIsLost) {
  AcknowledgedExchanges exchanges = AHundred();
  EXPECT_EQ(exchanges.GoBack(1440, exchanges.last()).exchanges, 10u);
  EXPECT_EQ(exchanges.GoBack(1440, exchanges.last()).exchanges, 0u);
  exchanges.Note(1616, At(11));
  EXPECT_EQ(exchanges.GoBack(1440, exchanges.last()).exchanges, 1u);
}

// A restarted server may answer an exchange before a Locate call tells which snapshot it has. That exchange is not
// lost.
TEST(AcknowledgedExchanges, WhatTheNewStartAnsweredIsNotLost) {
  AcknowledgedExchanges exchanges = AHundred();
  exchanges.Note(1616, At(20));
  const Setback setback = exchanges.GoBack(1440, 1600);
  EXPECT_EQ(setback.exchanges, 10u);
  EXPECT_NEAR(absl::ToDoubleSeconds(setback.time), 1, 1e-6);
  EXPECT_EQ(exchanges.last(), 1616u);
}

TEST(AcknowledgedExchanges, RemembersABoundedNumber) {
  AcknowledgedExchanges exchanges;
  for (int i = 1; i <= 70000; ++i) exchanges.Note(i, At(i));
  EXPECT_FALSE(AcknowledgedExchanges(exchanges).GoBack(69000, 70000).more);
  const Setback setback = exchanges.GoBack(0, 70000);
  EXPECT_TRUE(setback.more);
  EXPECT_EQ(setback.exchanges, 65536u);
}

TEST(SetbackText, SaysWhereAndHowMuch) {
  const SetbackPlace place = {"10.0.0.2:7411", At(14 * 3600 + 3 * 60 + 5), {30000, 61707}, 61707};
  EXPECT_EQ(SetbackText(place, {37, false, absl::Seconds(4.1)}),
            "server 10.0.0.2:7411 came back from its snapshot of 1970-01-01T14:03:05Z: parameters 30,000-61,706 of the "
            "center "
            "(51 %) went back by 37 exchanges, 4.1 s");
  const SetbackPlace small = {"a:1", At(0), {0, 10}, 10};
  EXPECT_EQ(SetbackText(small, {1, false, absl::Seconds(0.14)}),
            "server a:1 came back from its snapshot of 1970-01-01T00:00:00Z: parameters 0-9 of the center (100 %) went "
            "back by "
            "1 exchange, 0.1 s");
  EXPECT_NE(SetbackText(small, {65536, true, absl::Seconds(1)}).find("by more than 65,536 exchanges"),
            std::string::npos);
}

}  // namespace
}  // namespace hooke
