#include "server/parameters/served_exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hooke {
namespace {

using testing::IsEmpty;

ServedMessage Message(const ServedId& of, int64_t arrived, int64_t answered, int64_t waited = 0) {
  return {of, arrived, answered, waited, 100, 50};
}

std::vector<uint64_t> SequencesOf(const ServedExchanges& served) {
  std::vector<uint64_t> sequences;
  for (const ServedRow& row : served.Read()) sequences.push_back(row.of.sequence);
  return sequences;
}

// The messages of an exchange make one row, also while those of another rank come in between. Rows come in order of
// their end.
TEST(ServedExchangesTest, OneRowForEachExchange) {
  ServedExchanges served;
  EXPECT_THAT(served.Read(), IsEmpty());
  const ServedId one = {0, 1, 3, 8};
  const ServedId other = {1, 1, 3, 8};
  served.Add(Message(one, 1000, 1100, 30));
  served.Add(Message(other, 1050, 1060));
  served.Add(Message(one, 1200, 1400, 150));
  const std::vector<ServedRow> rows = served.Read();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].of, other);
  EXPECT_EQ(rows[0].messages, 1u);
  EXPECT_EQ(rows[1].of, one);
  EXPECT_EQ(rows[1].begin_ns, 1000);
  EXPECT_EQ(rows[1].end_ns, 1400);
  EXPECT_EQ(rows[1].work_ns, 100 - 30 + 200 - 150);
  EXPECT_EQ(rows[1].wait_ns, 180);
  EXPECT_EQ(rows[1].messages, 2u);
  EXPECT_EQ(rows[1].received_bytes, 200u);
  EXPECT_EQ(rows[1].sent_bytes, 100u);
}

// Another sequence, incarnation, rank or group is another exchange.
TEST(ServedExchangesTest, WhatAnExchangeIs) {
  ServedExchanges served;
  const ServedId id = {1, 1, 1, 1};
  for (const ServedId& next : std::vector<ServedId>{id, {1, 1, 1, 2}, {1, 1, 2, 2}, {1, 2, 2, 2}, {2, 2, 2, 2}}) {
    served.Add(Message(next, 10, 20));
    served.Add(Message(next, 30, 40));
  }
  ASSERT_EQ(served.Read().size(), 5u);
  for (const ServedRow& row : served.Read()) EXPECT_EQ(row.messages, 2u);
}

// A full ring drops the exchange that began first. A message of an exchange that was dropped begins a new row.
TEST(ServedExchangesTest, IsBounded) {
  ServedExchanges served(3);
  served.Add(Message({9, 0, 1, 100}, 1, 2));
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    const auto at = static_cast<int64_t>(10 * sequence);
    served.Add(Message({0, 0, 1, sequence}, at, at + 5));
  }
  EXPECT_EQ(SequencesOf(served), (std::vector<uint64_t>{2, 3, 4}));
  served.Add(Message({9, 0, 1, 100}, 100, 101));
  EXPECT_EQ(SequencesOf(served), (std::vector<uint64_t>{3, 4, 100}));
  EXPECT_EQ(served.Read().back().begin_ns, 100);
  served.Add(Message({0, 0, 1, 4}, 110, 111));
  EXPECT_EQ(SequencesOf(served), (std::vector<uint64_t>{3, 100, 4}));
}

// No time is negative, also of a message that was answered before it arrived, or that waited longer than it took.
TEST(ServedExchangesTest, TimesStayInOrder) {
  ServedExchanges served;
  served.Add(Message({0, 0, 1, 1}, 100, 90, 5));
  served.Add(Message({0, 0, 1, 2}, 100, 110, 50));
  const std::vector<ServedRow> rows = served.Read();
  EXPECT_EQ(rows[0].end_ns, 100);
  EXPECT_EQ(rows[0].work_ns, 0);
  EXPECT_EQ(rows[0].wait_ns, 0);
  EXPECT_EQ(rows[1].work_ns, 0);
  EXPECT_EQ(rows[1].wait_ns, 10);
}

// Ranks on several threads, and a reader beside them: no message is lost.
TEST(ServedExchangesTest, ManyThreads) {
  constexpr uint32_t kRanks = 4, kExchanges = 200, kMessages = 5;
  ServedExchanges served;
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&served, rank] {
      for (uint64_t i = 0; i < uint64_t{kExchanges} * kMessages; ++i) {
        const auto now = static_cast<int64_t>(i);
        served.Add(Message({0, rank, 1, i / kMessages}, now, now + 1));
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_LE(served.Read().size(), kRanks * kExchanges);
  for (std::thread& rank : ranks) rank.join();
  const std::vector<ServedRow> rows = served.Read();
  EXPECT_EQ(rows.size(), kRanks * kExchanges);
  for (const ServedRow& row : rows) EXPECT_EQ(row.messages, kMessages);
}

}  // namespace
}  // namespace hooke
