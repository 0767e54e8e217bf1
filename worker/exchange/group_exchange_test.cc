#include "worker/exchange/group_exchange.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "algorithms/exchange_plan.h"
#include "algorithms/fragments.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "proto/job.pb.h"
#include "worker/exchange/in_memory_server.h"

namespace hooke {
namespace {

using ::testing::Each;

constexpr uint64_t kBlocks = 9;
constexpr uint64_t kValues = kBlocks * kBlockValues - 100;
constexpr float kStart = 8;
constexpr double kAlpha = 0.25;

// The value `x` after one step of the group's own training.
double Trained(double x, uint64_t step) { return x - 0.125 * (x - static_cast<double>(step % 5)); }

struct RankResult {
  std::vector<float> vector;
  uint64_t steps = 0;
  absl::Status status;
  v1::RankProgress progress;
  CenterGap gap;
};

// One group, whose ranks are threads, exchanges with two servers by the elastic rule. Its ranks call Begin and Finish
// by an exchange rhythm, as a trainer does.
class GroupExchangeTest : public ::testing::Test {
 protected:
  GroupExchangeTest() {
    for (auto& server : servers_) calls_.push_back(server->Dial());
  }

  std::vector<RankResult> Run(int ranks) {
    std::vector<RankResult> results(ranks);
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks);
    std::vector<std::thread> threads;
    threads.reserve(groups.size());
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] { results[rank] = RunRank(*groups[rank]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  RankResult RunRank(Group& group) {
    RankResult result;
    const Arena arena = *Arena::Make({.parameters = kValues});
    std::fill(arena.vector().begin(), arena.vector().end(), kStart);
    CenterOptions center;
    center.sender.set_job_id("job-1");
    center.sender.set_rank(static_cast<uint32_t>(group.rank()));
    center.sender.set_incarnation(1);
    center.job.set_rule(v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(kAlpha);
    center.job.set_groups(1);
    center.job.set_ranks(static_cast<uint32_t>(group.size()));
    center.layout.parameters.push_back({"w", {kValues}});
    center.partition = Partition(kValues);
    center.servers = {calls_[0].get(), calls_[1].get()};
    CenterClient client(center);
    if (group.rank() == 0) {
      EXPECT_TRUE(client.Attach(arena.vector(), SteadyTime() + absl::Seconds(30)).ok());
    }
    EXPECT_TRUE(group.Barrier().ok());
    ReporterOptions reporting;
    reporting.clock = [this] { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); };
    Reporter reporter(std::move(reporting));
    GroupExchangeOptions options;
    options.sender = center.sender;
    options.rule = rule_;
    options.overlaps = rhythm_.delay > 0 || rhythm_.fragments > 1;
    options.exchange_timeout = timeout_;
    options.clock = SteadyTime;
    GroupExchange exchange({&group, &arena, &client, &reporter}, options);
    for (uint64_t step = 1; step <= rhythm_.steps_total && result.status.ok(); ++step) {
      reporter.Enter(v1::RankProgress::COMPUTE);
      EXPECT_TRUE(group.Barrier().ok());
      if (group.rank() == 0) ++seconds_;
      if (group.rank() == 0 && before_step_) before_step_(step);
      EXPECT_TRUE(group.Barrier().ok());
      if (step == awaits_servers_at_) AwaitServers(reporter);
      for (float& x : arena.vector()) x = static_cast<float>(Trained(x, step));
      result.steps = step;
      result.status = Follow(exchange, step);
      if (step == stop_after_) break;
    }
    result.vector.assign(arena.vector().begin(), arena.vector().end());
    result.progress = reporter.Progress();
    result.gap = exchange.gap();
    return result;
  }

  static void AwaitServers(const Reporter& reporter) {
    const absl::Time end = SteadyTime() + absl::Seconds(20);
    while (reporter.Progress().absent_servers_size() > 0 && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(reporter.Progress().absent_servers_size(), 0);
  }

  absl::Status Follow(GroupExchange& exchange, uint64_t step) {
    const ExchangePlan plan = PlanExchange(rhythm_, {step, exchange.in_flight_since(), std::nullopt});
    if (plan.finishes) {
      if (absl::Status status = exchange.Finish(); !status.ok()) return status;
    }
    if (!plan.begins) return absl::OkStatus();
    exchange.Begin({step, plan.fragment, step == rhythm_.steps_total});
    return plan.waits ? exchange.Finish() : absl::OkStatus();
  }

  // The slow, obvious version for one value of fragment `fragment`, in double precision. It computes the group's value
  // and the center's. The answer to the exchange that began after step `lost` comes with the next exchange.
  struct Pair {
    double x = kStart;
    double center = kStart;
  };
  Pair Reference(uint64_t fragment, uint64_t lost = 0) const {
    Pair pair;
    double difference = 0;
    double late = 0;
    const uint64_t stride = rhythm_.interval / rhythm_.fragments;
    uint64_t begun = 0;  // 0: no exchange is in flight.
    for (uint64_t step = 1; step <= rhythm_.steps_total; ++step) {
      const bool last = step == rhythm_.steps_total;
      pair.x = Trained(pair.x, step);
      const auto begin = [&] {
        difference = kAlpha * (pair.x - late - pair.center);
        pair.center += difference;
        begun = step;
      };
      const auto finish = [&] {
        if (begun != 0 && begun == lost) {
          late = difference;
        } else if (begun != 0) {
          pair.x -= late + difference;
          late = 0;
        }
        begun = 0;
      };
      if (last || step == begun + rhythm_.delay) finish();
      if (last || (step % stride == 0 && (step / stride - 1) % rhythm_.fragments == fragment)) begin();
      if (last || rhythm_.delay == 0) finish();
    }
    return pair;
  }

  float CenterValue(uint64_t index) const {
    const std::vector<float> first = servers_[0]->center();
    return index < first.size() ? first[index] : servers_[1]->center()[index - first.size()];
  }

  RuleName rule_ = RuleName::kElastic;  // The ranks' rule; the servers' is always elastic.
  ExchangeRhythm rhythm_;
  uint64_t stop_after_ = 0;         // The ranks stop after this step; 0: at the end.
  uint64_t awaits_servers_at_ = 0;  // The step before which each rank waits until it knows that its servers are back.
  absl::Duration timeout_ = absl::Seconds(10);
  std::function<void(uint64_t step)> before_step_;  // Called on rank 0 while the other ranks wait.
  // The reporters' clock: a step takes one second, and nothing else takes time.
  std::atomic<int> seconds_{0};
  std::vector<std::unique_ptr<InMemoryServer>> servers_ = TwoInMemoryServers();
  std::vector<std::unique_ptr<ServerCalls>> calls_;
};

// With any delay and any number of fragments, group and center end with the reference's values, in every block. All
// ranks end with the same bits.
TEST_F(GroupExchangeTest, FollowsTheReference) {
  const ExchangeRhythm rhythms[] = {
      {.interval = 4, .steps_total = 18},
      {.interval = 4, .delay = 1, .steps_total = 18},
      {.interval = 4, .delay = 3, .steps_total = 18},
      {.interval = 4, .fragments = 2, .steps_total = 19},
      {.interval = 6, .delay = 1, .fragments = 3, .steps_total = 20},
      {.interval = 8, .delay = 3, .fragments = 2, .steps_total = 27},
  };
  for (const ExchangeRhythm& rhythm : rhythms) {
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << "interval " << rhythm.interval << ", delay " << rhythm.delay << ", fragments "
                                      << rhythm.fragments << ", ranks " << ranks);
      for (auto& server : servers_) server->Forget();
      rhythm_ = rhythm;
      const std::vector<RankResult> results = Run(ranks);
      const Partition partition(kValues);
      for (uint64_t fragment = 0; fragment < rhythm.fragments; ++fragment) {
        const Pair should = Reference(fragment);
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_TRUE(results[rank].status.ok()) << results[rank].status;
          EXPECT_EQ(results[rank].vector, results[0].vector);
          const Cut slice = {static_cast<uint64_t>(rank), static_cast<uint64_t>(ranks)};
          for (const Range& range : FragmentValues(partition, slice, 2, {fragment, rhythm.fragments})) {
            for (const uint64_t i : {range.begin, range.end - 1}) {
              EXPECT_NEAR(results[0].vector[i], should.x, 1e-5) << i;
              EXPECT_NEAR(CenterValue(i), should.center, 1e-5) << i;
            }
          }
        }
      }
    }
  }
}

// The gaps of the ranks add up to that of the group, as it was when the exchange began, with and without a delay.
TEST_F(GroupExchangeTest, MeasuresTheDistanceFromTheCenter) {
  double x = kStart;
  for (uint64_t step = 1; step <= 4; ++step) x = Trained(x, step);
  for (const uint32_t delay : {0u, 3u}) {
    for (const int ranks : {1, 3}) {
      for (auto& server : servers_) server->Forget();
      rhythm_ = {.interval = 4, .delay = delay, .steps_total = 8};
      stop_after_ = 7;  // One exchange.
      CenterGap gap;
      for (const RankResult& result : Run(ranks)) {
        EXPECT_TRUE(result.status.ok()) << result.status;
        gap += result.gap;
      }
      EXPECT_NEAR(RelativeDistance(gap).value_or(-1), std::abs(x - kStart) / kStart, 1e-5);
    }
  }
}

// A rule by which servers step the center gives the group no values of its own.
TEST_F(GroupExchangeTest, NoDistanceWithoutOwnValues) {
  rule_ = RuleName::kAsync;
  rhythm_ = {.interval = 4, .steps_total = 4};
  const RankResult result = Run(1)[0];
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(RelativeDistance(result.gap).has_value());
}

// With fragments each step exchanges at most one fragment, so fewer blocks are exchanged at once. In an interval as
// many blocks are exchanged as without fragments.
TEST_F(GroupExchangeTest, FragmentsLowerThePeak) {
  constexpr uint64_t kInterval = 6;
  for (const uint32_t fragments : {1, 2, 3}) {
    for (auto& server : servers_) server->Forget();
    rhythm_ = {.interval = kInterval, .fragments = fragments, .steps_total = 4 * kInterval};
    const int before = servers_[0]->applied() + servers_[1]->applied();
    std::vector<int> applied;  // Blocks applied by the beginning of each step.
    before_step_ = [&](uint64_t) { applied.push_back(servers_[0]->applied() + servers_[1]->applied() - before); };
    ASSERT_TRUE(Run(1)[0].status.ok());
    int peak = 0;
    for (size_t step = 1; step < applied.size(); ++step) peak = std::max(peak, applied[step] - applied[step - 1]);
    // The servers hold 5 and 4 blocks: a half is at most 3 + 2 blocks, a third at most 2 + 2.
    EXPECT_EQ(peak, std::vector<int>({9, 5, 4})[fragments - 1]);
    for (size_t step = kInterval; step + kInterval < applied.size(); step += kInterval) {
      EXPECT_EQ(applied[step], static_cast<int>(kBlocks * (step / kInterval)));
    }
  }
}

// While a server holds its answers back, the group trains on: the server answers only once the group has made steps
// since the exchange began. The answers are applied when they are due, and no exchange counts as failed.
TEST_F(GroupExchangeTest, StepsGoOnWhileAServerIsSlow) {
  rhythm_ = {.interval = 8, .delay = 5, .steps_total = 30};
  before_step_ = [&](uint64_t step) {
    if (step % 8 == 0) servers_[1]->SetAnswering(false);
    if (step % 8 == 4) servers_[1]->SetAnswering(true);
  };
  const std::vector<RankResult> results = Run(2);
  const Pair should = Reference(0);
  for (const RankResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.steps, 30u);
    EXPECT_EQ(result.progress.exchanges(), 4u);
    EXPECT_EQ(result.progress.exchange_failures(), 0u);
    EXPECT_EQ(result.progress.exchange_seconds(), 0) << "what is hidden by training is none of the exchange's time";
    EXPECT_EQ(result.progress.compute_seconds(), 30);
    for (const uint64_t i : {uint64_t{0}, kValues - 1}) EXPECT_NEAR(result.vector[i], should.x, 1e-5);
  }
}

// If a server stays silent beyond the delay, the group waits for it until the timeout, as without a delay. Later
// exchanges try it again. Its late answer is applied once, with the answer to the next exchange of the same blocks.
TEST_F(GroupExchangeTest, ALateAnswerIsAppliedOnce) {
  timeout_ = absl::Seconds(5);
  awaits_servers_at_ = 9;  // An exchange that begins earlier would skip the servers, and fail as well.
  before_step_ = [&](uint64_t step) {
    // The servers apply the blocks, but their answers are lost: at step 8 the group gives up.
    if (step == 6 || step == 9) {
      for (auto& server : servers_) server->SetLosingAnswers(step == 6);
    }
  };
  for (const uint32_t fragments : {1, 2}) {
    for (auto& server : servers_) server->Forget();
    rhythm_ = {.interval = 6, .delay = 2, .fragments = fragments, .steps_total = 31};
    const std::vector<RankResult> results = Run(2);
    for (const RankResult& result : results) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(result.vector, results[0].vector);
      EXPECT_EQ(result.progress.exchange_failures(), 1u);
    }
    const Pair should = Reference(fragments - 1, /*lost=*/6);
    const uint64_t value = FragmentValues(Partition(kValues), {0, 2}, 2, {fragments - 1, fragments})[0].begin;
    EXPECT_NEAR(results[0].vector[value], should.x, 1e-5);
    EXPECT_NEAR(CenterValue(value), should.center, 1e-5);
  }
}

// A server comes back without its disk. It gets its shard from the group's vector while the group waits, not while
// training changes the vector. The exchange still ends in time.
TEST_F(GroupExchangeTest, ALostShardIsMadeAgainFromAVectorAtRest) {
  rhythm_ = {.interval = 8, .delay = 4, .steps_total = 24};
  before_step_ = [&](uint64_t step) {
    if (step == 8) servers_[1]->Forget();
  };
  const std::vector<RankResult> results = Run(2);
  for (const RankResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.vector, results[0].vector);
    EXPECT_EQ(result.progress.exchange_failures(), 0u);
  }
  const std::vector<float> center = servers_[1]->center();
  ASSERT_FALSE(center.empty());
  EXPECT_THAT(center, Each(center[0])) << "all values of one moment";
}

// The second of three ranks has nothing to exchange for the second fragment with the second server. Its copy of the
// center must still follow the other ranks' parts. Whichever rank rebuilds the lost shard, the shard gets none of the
// values that the job started with.
TEST_F(GroupExchangeTest, ALostShardIsMadeAgainFromTheLastFragments) {
  rule_ = RuleName::kAverage;
  rhythm_ = {.interval = 2, .fragments = 2, .steps_total = 40};
  const uint64_t shard = Partition(kValues).ShardValues({1, 2}).begin;
  ASSERT_LE(FragmentValues(Partition(kValues), {1, 3}, 2, {1, 2}).back().end, shard);
  const uint64_t others = FragmentValues(Partition(kValues), {2, 3}, 2, {1, 2}).back().begin - shard;
  int made_again = 0;
  before_step_ = [&](uint64_t step) {
    const bool first_fragment = step % 2 == 1;
    if (step > 3 && !first_fragment) {
      ++made_again;
      EXPECT_NE(servers_[1]->center()[others], kStart) << step;
    }
    if (step > 2 && first_fragment) servers_[1]->Forget();
  };
  for (const RankResult& result : Run(3)) EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(made_again, 19);
}

// If an exchange in flight fails with a final error, Finish returns the error on the rank.
TEST_F(GroupExchangeTest, AFinalErrorEndsTheRank) {
  rhythm_ = {.interval = 8, .delay = 4, .steps_total = 24};
  before_step_ = [&](uint64_t step) {
    if (step == 8) servers_[0]->SetError(absl::AbortedError("incarnation 1 has been replaced"));
  };
  const std::vector<RankResult> results = Run(1);
  EXPECT_EQ(results[0].status.code(), absl::StatusCode::kAborted) << results[0].status;
  EXPECT_EQ(results[0].steps, 12u);
}

// A GroupExchange is destroyed while an exchange is in flight, with a server that does not answer or has lost its
// shard. The destructor returns at once.
TEST_F(GroupExchangeTest, EndsInFlight) {
  rhythm_ = {.interval = 4, .delay = 3, .steps_total = 100};
  stop_after_ = 6;
  for (const bool lost : {false, true}) {
    before_step_ = [&](uint64_t step) {
      if (step == 4 && lost) servers_[0]->Forget();
      if (step == 4 && !lost) servers_[0]->SetAnswering(false);
    };
    const absl::Time start = SteadyTime();
    EXPECT_EQ(Run(1)[0].steps, 6u);
    EXPECT_LT(SteadyTime() - start, absl::Seconds(8)) << "not after the timeout of 10 seconds";
    servers_[0]->SetAnswering(true);
  }
}

}  // namespace
}  // namespace hooke
