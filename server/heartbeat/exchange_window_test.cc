// Shows what a server says of its answers of the last seconds, with counts and times made by hand.

#include "server/heartbeat/exchange_window.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

constexpr size_t kBuckets = kAnswerSecondsBounds.size() + 1;
const absl::Time kStart = absl::FromUnixSeconds(1000);

// Returns the bucket of answers that took at most `seconds`, which is one of the bounds.
size_t BucketUpTo(double seconds) {
  for (size_t i = 0; i < kAnswerSecondsBounds.size(); ++i) {
    if (kAnswerSecondsBounds[i] == seconds) return i;
  }
  ADD_FAILURE() << seconds << " is no bound";
  return 0;
}

ShardFigures ShardOf(const std::string& job_id, uint64_t answers, double seconds, uint64_t bytes) {
  ShardFigures shard;
  shard.job_id = job_id;
  shard.exchanges.answers = std::vector<uint64_t>(kBuckets);
  shard.exchanges.answers[BucketUpTo(seconds)] = answers;
  shard.exchanges.received_bytes = bytes;
  shard.exchanges.sent_bytes = 2 * bytes;
  return shard;
}

// A quantile lies inside its bucket in proportion to the answers below it.
TEST(AnswerQuantileTest, IsInterpolatedInsideItsBucket) {
  std::vector<uint64_t> answers(kBuckets);
  EXPECT_EQ(AnswerQuantile(answers, 0.5), 0);
  answers[0] = 10;  // Up to 0.1 ms.
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 0.5), 0.00005);
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 1), 0.0001);
  answers[BucketUpTo(0.005)] = 30;  // From 2 to 5 ms.
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 0.25), 0.0001);
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 0.5), 0.003);
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 1), 0.005);
}

// An answer that took longer than the largest bound counts as long as that bound. How much longer it took is not known.
TEST(AnswerQuantileTest, ThereIsNoBoundBeyondTheLast) {
  std::vector<uint64_t> answers(kBuckets);
  answers[kBuckets - 1] = 3;
  EXPECT_EQ(AnswerQuantile(answers, 0.5), 10);
  answers[0] = 97;
  EXPECT_DOUBLE_EQ(AnswerQuantile(answers, 0.97), 0.0001);
  EXPECT_EQ(AnswerQuantile(answers, 0.99), 10);
}

// Rates and quantiles are those of the last ten seconds. What was answered before them, or before the first look, does
// not count.
TEST(ExchangeWindowTest, CountsTheLastSeconds) {
  ExchangeWindow window(absl::Seconds(10));
  ParameterFigures figures;
  figures.shards = {ShardOf("a-1", 1000, 10, 1 << 20)};
  EXPECT_EQ(window.Add(kStart, figures).messages_per_second(), 0);
  for (int second = 1; second <= 30; ++second) {
    figures.shards[0].exchanges.answers[BucketUpTo(second <= 15 ? 0.001 : 0.002)] += 4;
    figures.shards[0].exchanges.received_bytes += 100;
    figures.shards[0].exchanges.sent_bytes += 300;
    const v1::ExchangeFigures shown = window.Add(kStart + absl::Seconds(second), figures);
    EXPECT_DOUBLE_EQ(shown.messages_per_second(), 4) << second;
    EXPECT_DOUBLE_EQ(shown.received_bytes_per_second(), 100) << second;
    EXPECT_DOUBLE_EQ(shown.sent_bytes_per_second(), 300) << second;
    if (second <= 15) {
      EXPECT_DOUBLE_EQ(shown.median_ms(), 0.75) << second;
    }
    if (second >= 25) {
      EXPECT_DOUBLE_EQ(shown.median_ms(), 1.5) << second;
      EXPECT_DOUBLE_EQ(shown.p99_ms(), 1.99) << second;
    }
  }
  for (int second = 31; second <= 40; ++second) window.Add(kStart + absl::Seconds(second), figures);
  const v1::ExchangeFigures idle = window.Add(kStart + absl::Seconds(41), figures);
  EXPECT_EQ(idle.messages_per_second(), 0);
  EXPECT_EQ(idle.median_ms(), 0);
}

// Shards come and go, and a job's shard may begin anew: each answer counts once, and no count goes back.
TEST(ExchangeWindowTest, ShardsComeAndGo) {
  ExchangeWindow window(absl::Seconds(10));
  window.Add(kStart, {});
  ParameterFigures figures;
  figures.shards = {ShardOf("a-1", 6, 0.001, 60), ShardOf("b-2", 4, 0.001, 40)};
  EXPECT_DOUBLE_EQ(window.Add(kStart + absl::Seconds(1), figures).messages_per_second(), 10);
  figures.shards = {ShardOf("b-2", 2, 0.001, 20)};
  const v1::ExchangeFigures shown = window.Add(kStart + absl::Seconds(2), figures);
  EXPECT_DOUBLE_EQ(shown.messages_per_second(), 6);
  EXPECT_DOUBLE_EQ(shown.received_bytes_per_second(), 60);
  EXPECT_DOUBLE_EQ(shown.sent_bytes_per_second(), 120);
  EXPECT_DOUBLE_EQ(window.Add(kStart + absl::Seconds(3), {}).messages_per_second(), 4);
}

TEST(OldestSnapshotTest, IsThatOfTheOldest) {
  ParameterFigures figures;
  EXPECT_EQ(OldestSnapshotSeconds(figures), 0);
  figures.shards.resize(3);
  figures.shards[0].snapshot_age = absl::Seconds(3);
  figures.shards[2].snapshot_age = absl::Seconds(7.5);
  EXPECT_EQ(OldestSnapshotSeconds(figures), 7.5);
}

}  // namespace
}  // namespace hooke
