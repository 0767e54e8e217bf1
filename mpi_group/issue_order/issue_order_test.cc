#include "mpi_group/issue_order/issue_order.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kDeadline = absl::Seconds(20);     // For tests in which nothing fails.
constexpr absl::Duration kShort = absl::Milliseconds(150);  // For tests in which something fails.
// Time by which every rank must have returned, even on a busy machine.
constexpr absl::Duration kSoon = absl::Seconds(10);

absl::Status Sum(Group& group, const TensorList& bucket) { return group.AllReduce(bucket, ReduceOp::kSum); }

using Groups = std::vector<std::unique_ptr<Group>>;

Groups MakeGroups(int ranks, absl::Duration deadline) {
  GroupOptions options;
  options.deadline = deadline;
  return MakeInProcessGroups(ranks, options);
}

// One rank's buckets and its issue order.
class Rank {
 public:
  // Lanes beyond the first are clones of the group.
  Rank(const std::vector<uint64_t>& sizes, Group& group, size_t lanes = 1) : rank_(group.rank()) {
    for (uint64_t size : sizes) values_.emplace_back(size);
    options_.lanes.push_back(&group);
    while (options_.lanes.size() < lanes) {
      clones_.push_back(*group.Clone());
      options_.lanes.push_back(clones_.back().get());
    }
    options_.collective = Sum;
    options_.deadline = kDeadline;
  }

  IssueOrderOptions& options() { return options_; }
  std::vector<std::vector<float>>& values() { return values_; }

  absl::Status Make(IssuePolicy policy) {
    options_.policy = policy;
    if (options_.buckets.empty()) {
      for (std::vector<float>& bucket : values_) options_.buckets.push_back(TensorList(absl::MakeSpan(bucket)));
    }
    absl::StatusOr<std::unique_ptr<IssueOrder>> order = MakeIssueOrder(options_);
    if (!order.ok()) return order.status();
    order_ = *std::move(order);
    return absl::OkStatus();
  }
  IssueOrder& order() { return *order_; }
  void Drop() { order_.reset(); }

  // The contribution of a rank to value i of bucket b. Sums of a few ranks' contributions are exact.
  static float Contribution(int rank, size_t b, size_t i, uint32_t seed) {
    return static_cast<float>((rank + 1) * 1000 + static_cast<int>(b * 37 + i * 11 + seed % 91));
  }

  // Writes all buckets, makes most of them ready, and returns the others. Seed and rank decide which, in which order,
  // and from how many threads.
  std::vector<size_t> MakeMostReady(uint32_t seed) {
    std::mt19937 random(seed * 8 + rank_);
    std::vector<size_t> order(values_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const bool in_two = random() % 2 == 0;
    std::vector<size_t> rest(in_two ? random() % (order.size() + 1) : 0);
    for (size_t& bucket : rest) {
      bucket = order.back();
      order.pop_back();
      Write(bucket, seed);
    }
    const size_t threads = random() % 3 + 1;
    const auto make_ready = [&](size_t first) {
      for (size_t place = first; place < order.size(); place += threads) {
        Write(order[place], seed);
        order_->Ready(order[place]);
      }
    };
    std::vector<std::thread> others;
    for (size_t first = 1; first < threads; ++first) others.emplace_back(make_ready, first);
    make_ready(0);
    for (std::thread& other : others) other.join();
    return rest;
  }

  void ExpectSums(int ranks, uint32_t seed) const {
    for (size_t b = 0; b < values_.size(); ++b) {
      for (size_t i = 0; i < values_[b].size(); ++i) {
        float sum = 0;
        for (int rank = 0; rank < ranks; ++rank) sum += Contribution(rank, b, i, seed);
        ASSERT_EQ(values_[b][i], sum) << "seed " << seed << ", bucket " << b << ", value " << i;
      }
    }
  }

 private:
  void Write(size_t b, uint32_t seed) {
    for (size_t i = 0; i < values_[b].size(); ++i) values_[b][i] = Contribution(rank_, b, i, seed);
  }

  const int rank_;
  std::vector<std::vector<float>> values_;
  Groups clones_;
  IssueOrderOptions options_;
  std::unique_ptr<IssueOrder> order_;
};

class IssueOrderTest : public ::testing::TestWithParam<IssuePolicy> {
 protected:
  static size_t Lanes() { return GetParam() == IssuePolicy::kConcurrent ? 2 : 1; }

  // Runs body(r, rank) on `ranks` ranks, each with buckets of 3, 5 and 2 values, and returns their results. No rank may
  // take longer than kSoon.
  template <typename Body>
  std::vector<absl::Status> RunFailing(int ranks, const Body& body) {
    const Groups groups = MakeGroups(ranks, kShort);
    std::vector<absl::Status> outcomes(ranks);
    const absl::Time begin = SteadyNow();
    RunRanks(ranks, [&](int r) {
      Rank rank({3, 5, 2}, *groups[r], Lanes());
      outcomes[r] = body(r, rank);
      rank.Drop();
      EXPECT_LT(SteadyNow() - begin, kSoon) << "rank " << r;
    });
    return outcomes;
  }
};

std::vector<absl::StatusCode> CodesOf(const std::vector<absl::Status>& statuses) {
  std::vector<absl::StatusCode> codes;
  codes.reserve(statuses.size());
  for (const absl::Status& status : statuses) codes.push_back(status.code());
  return codes;
}

// No order of readiness blocks, and every sum is exact. 50 shapes have 2 to 4 ranks and 1 to 9 buckets. Each shape
// makes 20 passes with a seed of their own. In each pass 1 to 3 threads of a rank make the buckets ready in another
// order, some only at the end.
TEST_P(IssueOrderTest, NoOrderOfReadinessBlocksOrMixes) {
  constexpr uint32_t kShapes = 50;
  constexpr uint32_t kPasses = 20;
  for (uint32_t shape = 0; shape < kShapes; ++shape) {
    std::mt19937 random(shape);
    const int ranks = static_cast<int>(random() % 3) + 2;
    std::vector<uint64_t> sizes(random() % 9 + 1);
    for (uint64_t& size : sizes) size = random() % 20;
    const size_t lanes = GetParam() == IssuePolicy::kConcurrent ? random() % 3 + 1 : 1;
    const Groups groups = MakeGroups(ranks, kDeadline);
    RunRanks(ranks, [&](int r) {
      Rank rank(sizes, *groups[r], lanes);
      ASSERT_TRUE(rank.Make(GetParam()).ok());
      for (uint32_t pass = 0; pass < kPasses; ++pass) {
        const uint32_t seed = shape * kPasses + pass;
        const std::vector<size_t> rest = rank.MakeMostReady(seed);
        const absl::Status status = rank.order().FinishWith(rest);
        ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
        rank.ExpectSums(ranks, seed);
      }
    });
  }
}

// No order of readiness blocks, and every sum is exact, with buckets in an arena too. Collectives then write into
// peers' buckets while the peers' backward fills other buckets.
TEST_P(IssueOrderTest, BucketsOfASharedArena) {
  constexpr int kRanks = 3;
  constexpr uint64_t kValues = 60;  // Values of each of the 5 buckets.
  const Groups groups = MakeGroups(kRanks, kDeadline);
  RunRanks(kRanks, [&](int r) {
    const absl::Span<float> arena = *AllocateSharedValues<float>(*groups[r], 5 * kValues);
    Rank rank({}, *groups[r], Lanes());
    for (uint64_t b = 0; b < 5; ++b) rank.options().buckets.push_back(TensorList(arena.subspan(b * kValues, kValues)));
    ASSERT_TRUE(rank.Make(GetParam()).ok());
    std::mt19937 random(r);
    std::vector<size_t> order = {0, 1, 2, 3, 4};
    for (int pass = 1; pass <= 200; ++pass) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t b : order) {
        for (float& value : arena.subspan(b * kValues, kValues)) value = static_cast<float>(pass + r);
        rank.order().Ready(b);
      }
      ASSERT_TRUE(rank.order().Finish().ok());
      EXPECT_THAT(arena, Each(static_cast<float>(3 * pass + 3)));
    }
  });
}

// Wait returns one bucket's result before the others are ready.
TEST_P(IssueOrderTest, WaitsForOneBucket) {
  const Groups groups = MakeGroups(2, kDeadline);
  RunRanks(2, [&](int r) {
    Rank rank({4, 4}, *groups[r], Lanes());
    ASSERT_TRUE(rank.Make(GetParam()).ok());
    rank.values()[0].assign(4, static_cast<float>(r + 1));
    rank.order().Ready(0);
    ASSERT_TRUE(rank.order().Wait(0).ok());
    EXPECT_THAT(rank.values()[0], Each(3.0f));
    rank.order().Ready(1);
    EXPECT_TRUE(rank.order().Finish().ok());
    EXPECT_GT(rank.order().times().busy, absl::ZeroDuration());
    EXPECT_GT(rank.order().times().waited, absl::ZeroDuration());
  });
}

// If one rank has another size or type of a bucket, another number of buckets or another policy, making the issue
// orders fails. Every rank gets the same error, which names the difference.
TEST_P(IssueOrderTest, AnotherSizeOrTypeIsNamedOnEveryRank) {
  struct Case {
    const char* what;
    std::string expected;
  };
  for (const Case& c : {Case{"size", "bucket 1 has 4 float32 values on rank 2 and 5 float32 values on rank 0"},
                        Case{"type", "bucket 1 has 5 int32 values on rank 2 and 5 float32 values on rank 0"},
                        Case{"count", "the number of buckets is 2 on rank 2 and 3 on rank 0"},
                        Case{"policy", "the number of the issue policy is "}}) {
    std::vector<absl::Status> outcomes = RunFailing(3, [&](int r, Rank& rank) {
      const absl::string_view what = r == 2 ? c.what : "";
      if (what == "size") rank.values()[1].resize(4);
      if (what == "count") rank.values().pop_back();
      for (std::vector<float>& bucket : rank.values()) {
        rank.options().buckets.push_back(TensorList(absl::MakeSpan(bucket)));
      }
      if (what == "type") {
        rank.options().buckets[1] = TensorList(DataType::kInt32, MutableBytesOf(absl::MakeSpan(rank.values()[1])));
      }
      const bool other = what == "policy";
      return rank.Make(!other                                 ? GetParam()
                       : GetParam() == IssuePolicy::kFunneled ? IssuePolicy::kChained
                                                              : IssuePolicy::kFunneled);
    });
    for (const absl::Status& outcome : outcomes) {
      EXPECT_EQ(outcome.code(), absl::StatusCode::kInvalidArgument) << c.what << ": " << outcome;
      EXPECT_THAT(std::string(outcome.message()), HasSubstr(c.expected));
      EXPECT_EQ(outcome.message(), outcomes[0].message());
    }
  }
}

// A rank that skips a bucket learns at once which one, and calls nothing more. The others, which wait for it in that
// bucket or an earlier one, fail within the deadline.
TEST_P(IssueOrderTest, ASkippedBucketIsAnErrorOnEveryRank) {
  std::vector<absl::Status> outcomes = RunFailing(3, [&](int r, Rank& rank) {
    if (absl::Status status = rank.Make(GetParam()); !status.ok()) return status;
    for (size_t b : {2, 0, 1}) {
      if (r != 1 || b != 1) rank.order().Ready(b);
    }
    return rank.order().Finish();
  });
  EXPECT_EQ(outcomes[1].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcomes[1].message()), HasSubstr("bucket 1 of 3 was not made ready before Finish"));
  for (int r : {0, 2}) {
    EXPECT_THAT(outcomes[r].code(), AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable));
    EXPECT_THAT(std::string(outcomes[r].message()), HasSubstr(" of 3: "));
  }
}

// If a rank leaves out a whole pass, or never comes, all other ranks get an error.
TEST_P(IssueOrderTest, AMissingPassIsAnErrorOnEveryRank) {
  std::vector<absl::Status> outcomes = RunFailing(3, [&](int r, Rank& rank) {
    if (absl::Status status = rank.Make(GetParam()); !status.ok()) return status;
    for (int pass = 0; pass < 3; ++pass) {
      if (r == 0 && pass == 1) return absl::AbortedError("left out");
      const std::vector<size_t> rest = rank.MakeMostReady(pass);
      if (absl::Status status = rank.order().FinishWith(rest); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
  for (int r : {1, 2}) {
    EXPECT_THAT(outcomes[r].code(), AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable));
  }

  outcomes = RunFailing(
      3, [&](int r, Rank& rank) { return r == 2 ? absl::AbortedError("never came") : rank.Make(GetParam()); });
  for (int r : {0, 1}) {
    EXPECT_THAT(outcomes[r].code(), AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable));
  }
}

// If one rank's collective uses another size or operation than the checked buckets suggest, every rank gets an error.
TEST_P(IssueOrderTest, AWrongCallIsAnErrorOnEveryRank) {
  for (bool other_operation : {false, true}) {
    std::vector<absl::Status> outcomes = RunFailing(3, [&](int r, Rank& rank) {
      if (r == 1) {
        rank.options().collective = [&](Group& group, const TensorList& bucket) {
          if (bucket.size() != 5) return Sum(group, bucket);
          if (other_operation) return group.Barrier();
          return Sum(group, bucket.Slice({0, 4}));
        };
      }
      if (absl::Status status = rank.Make(GetParam()); !status.ok()) return status;
      return rank.order().FinishWith(rank.MakeMostReady(1));
    });
    EXPECT_THAT(CodesOf(outcomes), Each(AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable,
                                              absl::StatusCode::kInternal, absl::StatusCode::kInvalidArgument)))
        << other_operation;
    for (int r : {0, 2}) EXPECT_THAT(std::string(outcomes[r].message()), HasSubstr("rank 1"));
  }
}

// After a mistake of the caller every Finish returns INVALID_ARGUMENT. Mistakes with one bucket are to make it ready
// twice, to wait for it before it is ready, and to name one that does not exist. To finish before all buckets are ready
// is a mistake, too.
TEST_P(IssueOrderTest, WrongUseIsAnError) {
  const Groups groups = MakeGroups(1, kDeadline);
  const std::vector<std::pair<std::string, void (*)(IssueOrder&)>> cases = {
      {"bucket 0 of 2 was made ready twice", [](IssueOrder& order) { order.Ready(0), order.Ready(0); }},
      {"bucket 2 was made ready; there are only 2", [](IssueOrder& order) { order.Ready(2); }},
      {"bucket 0 of 2 was made ready twice",
       [](IssueOrder& order) {
         order.FinishWith({0, 0}).IgnoreError();
       }},
      {"bucket 3 was made ready; there are only 2", [](IssueOrder& order) { order.FinishWith({3}).IgnoreError(); }},
      {"bucket 0 of 2 was not made ready before Finish",
       [](IssueOrder& order) { order.FinishWith({1}).IgnoreError(); }},
      {"bucket 1 of 2 was not made ready before Finish",
       [](IssueOrder& order) { order.FinishWith({0}).IgnoreError(); }},
      {"bucket 1 of 2 is waited for but was not", [](IssueOrder& order) { order.Wait(1).IgnoreError(); }},
      {"bucket 7 of 2 is waited for but was not", [](IssueOrder& order) { order.Wait(7).IgnoreError(); }},
      {"bucket 0 of 2 was not made ready before Finish", [](IssueOrder& order) { order.Ready(1); }},
  };
  for (const auto& [expected, use] : cases) {
    Rank rank({1, 1}, *groups[0]);
    ASSERT_TRUE(rank.Make(GetParam()).ok());
    use(rank.order());
    for (int repeat = 0; repeat < 2; ++repeat) {
      const absl::Status status = rank.order().Finish();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
    }
  }
  IssueOrderOptions no_lane;
  EXPECT_EQ(MakeIssueOrder(no_lane).status().code(), absl::StatusCode::kInvalidArgument);
}

// Destroying an order in the middle of a pass, with collectives under way, ends within its groups' deadline.
TEST_P(IssueOrderTest, DestroyedInTheMiddleOfAPass) {
  const std::vector<absl::Status> outcomes = RunFailing(2, [&](int r, Rank& rank) {
    if (absl::Status status = rank.Make(GetParam()); !status.ok()) return status;
    if (r == 0) rank.order().Ready(0);
    return absl::OkStatus();
  });
  EXPECT_THAT(outcomes, Each(absl::OkStatus()));
}

INSTANTIATE_TEST_SUITE_P(Policies, IssueOrderTest,
                         ::testing::Values(IssuePolicy::kFunneled, IssuePolicy::kConcurrent, IssuePolicy::kChained),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// In a concurrent order, collectives of different lanes run at the same time. Here two collectives wait for each other.
TEST(ConcurrentOrderTest, LanesRunAtTheSameTime) {
  const Groups groups = MakeGroups(1, kDeadline);
  Rank rank({1, 1}, *groups[0], 2);
  absl::Mutex mutex;
  int inside = 0;
  rank.options().collective = [&](Group&, const TensorList&) {
    absl::MutexLock lock(&mutex);
    ++inside;
    const auto both = [&inside] { return inside == 2; };
    return mutex.AwaitWithTimeout(absl::Condition(&both), kDeadline) ? absl::OkStatus()
                                                                     : absl::InternalError("alone in its collective");
  };
  ASSERT_TRUE(rank.Make(IssuePolicy::kConcurrent).ok());
  rank.order().Ready(0);
  rank.order().Ready(1);
  EXPECT_TRUE(rank.order().Finish().ok());
}

// In a funneled order, collectives run while the caller does other work.
TEST(FunneledOrderTest, TheCallerIsFree) {
  const Groups groups = MakeGroups(1, kDeadline);
  Rank rank({1}, *groups[0]);
  absl::Mutex mutex;
  bool caller_went_on = false;
  rank.options().collective = [&](Group&, const TensorList&) {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&caller_went_on));
    return absl::OkStatus();
  };
  ASSERT_TRUE(rank.Make(IssuePolicy::kFunneled).ok());
  rank.order().Ready(0);
  {
    absl::MutexLock lock(&mutex);
    caller_went_on = true;
  }
  EXPECT_TRUE(rank.order().Finish().ok());
}

// In a funneled order, the caller of FinishWith itself calls the collective of the first bucket that it brings. It does
// not call that of an earlier bucket, for which the thread was already woken.
TEST(FunneledOrderTest, TheCallerCallsTheLastOnes) {
  const Groups groups = MakeGroups(1, kDeadline);
  Rank rank({1, 2, 3}, *groups[0]);
  std::vector<std::thread::id> callers(4);
  rank.options().collective = [&](Group&, const TensorList& bucket) {
    callers[bucket.size()] = std::this_thread::get_id();
    return absl::OkStatus();
  };
  ASSERT_TRUE(rank.Make(IssuePolicy::kFunneled).ok());
  for (int pass = 0; pass < 100; ++pass) {
    rank.order().Ready(0);
    ASSERT_TRUE(rank.order().Wait(0).ok());
    EXPECT_NE(callers[1], std::this_thread::get_id());
    ASSERT_TRUE(rank.order().FinishWith({1, 2}).ok());
    EXPECT_EQ(callers[2], std::this_thread::get_id());
  }
}

// In a chained order, the threads that make buckets ready run the collectives, in the order of the buckets. An early
// bucket waits for its turn, and the thread that completes the chain runs all.
TEST(ChainedOrderTest, WhoCompletesTheChainRunsIt) {
  const Groups groups = MakeGroups(1, kDeadline);
  Rank rank({1, 2, 3}, *groups[0]);
  std::vector<uint64_t> called;
  rank.options().collective = [&](Group&, const TensorList& bucket) {
    called.push_back(bucket.size());
    return absl::OkStatus();
  };
  ASSERT_TRUE(rank.Make(IssuePolicy::kChained).ok());
  rank.order().Ready(2);
  rank.order().Ready(1);
  EXPECT_TRUE(called.empty());
  rank.order().Ready(0);
  EXPECT_EQ(called, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(rank.order().Finish().ok());
}

}  // namespace
}  // namespace hooke
