#include "worker/training/group_step.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "worker/model/quadratic_model.h"
#include "worker/training/group_step_ranks.h"

namespace hooke {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every combination of aggregation, overlap and order gives the same losses, parameters and buffers on all ranks. These
// equal the results of one all-reduce after backward. With two ranks, whose sums have only one order, they are equal
// bit by bit.
TEST(AggregationTest, EveryWayIsTheSameStep) {
  for (int ranks : {1, 2, 3, 4}) {
    const std::vector<RankState> plain = RunGroup(ranks, RunOf(Plain()));
    ASSERT_TRUE(plain[0].status.ok()) << plain[0].status;
    for (const Way& way : AllWays()) {
      SCOPED_TRACE(absl::StrCat(way.name, ", ranks ", ranks));
      const std::vector<RankState> states = RunGroup(ranks, RunOf(way.options));
      for (const RankState& state : states) {
        ASSERT_TRUE(state.status.ok()) << state.status;
        EXPECT_EQ(state.vector, states[0].vector);
        EXPECT_EQ(state.losses, states[0].losses);
      }
      ExpectNear(states[0].vector, plain[0].vector, ranks <= 2 ? 0 : 1e-6f);
      ExpectNear(states[0].losses, plain[0].losses, ranks <= 2 ? 0 : 1e-6f);
    }
  }
}

// A group that passes every call on to another group, and records the collectives.
class CountingGroup : public Group {
 public:
  explicit CountingGroup(Group& group) : group_(group) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    if (in_batch != nullptr) Count("all-reduce", values);
    return group_.AllReduce(values, op);
  }
  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    Count("reduce", values);
    return group_.Reduce(values, op, root);
  }
  absl::Status Broadcast(const TensorList& values, int root) override {
    if (in_batch != nullptr) Count("broadcast", values);
    return group_.Broadcast(values, root);
  }
  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    Count("reduce-scatter", values);
    return group_.ReduceScatter(values, parts, op);
  }
  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    if (in_batch != nullptr) Count("all-gather", values);
    return group_.AllGather(values, parts);
  }
  absl::Status Barrier() override { return group_.Barrier(); }
  void SetDeadline(absl::Duration deadline) override { group_.SetDeadline(deadline); }
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override { return group_.AllocateShared(bytes); }

  // Points to whether the model is in a batch. Null: all-reduces, broadcasts and all-gathers are not recorded yet.
  const bool* in_batch = nullptr;
  std::vector<std::string> calls;

 private:
  void Count(absl::string_view what, const TensorList& values) {
    calls.push_back(absl::StrCat(what, " ", values.size(), *in_batch ? " in the batch" : ""));
  }

  Group& group_;
};

// A model that tells its CountingGroup whether a batch is running.
class WatchedModel : public QuadraticModel {
 public:
  explicit WatchedModel(CountingGroup& group) : QuadraticModel(60, 3), group_(group) {}

  absl::StatusOr<float> TrainBatch(const Batch& batch) override {
    group_.in_batch = &in_batch_;
    in_batch_ = true;
    absl::StatusOr<float> loss = QuadraticModel::TrainBatch(batch);
    in_batch_ = false;
    return loss;
  }

 private:
  CountingGroup& group_;
  bool in_batch_ = false;
};

std::vector<std::string> CallsOfACompleteStep(const GroupStepOptions& options) {
  std::vector<std::string> calls;
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
  RunRanks(2, [&](int rank) {
    CountingGroup group(*groups[rank]);
    RankRun run = RunOf(options);
    run.group = &group;
    run.steps = 1;
    run.make = [&] { return std::make_unique<WatchedModel>(group); };
    EXPECT_TRUE(RunRank(run).status.ok());
    if (rank == 0) calls = group.calls;
  });
  return calls;
}

// With overlap, every bucket but the last is reduced during backward, last layers first. Broadcasts (rooted) and
// all-gathers (sharded) come after backward, first layers first. Without overlap, each kind of collective is called
// once, after the batch. The buffer and the loss are in the bucket of the first layers.
TEST(AggregationTest, BucketsLeaveDuringBackward) {
  GroupStepOptions options = Plain();
  EXPECT_THAT(CallsOfACompleteStep(options), ElementsAre("all-reduce 62"));
  options.overlap = true;
  options.order = IssuePolicy::kChained;
  options.bucket_bytes = 80;
  EXPECT_THAT(CallsOfACompleteStep(options),
              ElementsAre("all-reduce 20 in the batch", "all-reduce 20 in the batch", "all-reduce 22"));
  options.bucket_bytes = 100;
  EXPECT_THAT(CallsOfACompleteStep(options), ElementsAre("all-reduce 40 in the batch", "all-reduce 22"));
  options.kind = AggregationKind::kRooted;
  EXPECT_THAT(CallsOfACompleteStep(options),
              ElementsAre("reduce 40 in the batch", "reduce 22", "broadcast 22", "broadcast 40"));
  options.overlap = false;
  EXPECT_THAT(CallsOfACompleteStep(options), ElementsAre("reduce 62", "broadcast 62"));
  options.kind = AggregationKind::kSharded;
  EXPECT_THAT(CallsOfACompleteStep(options), ElementsAre("reduce-scatter 62", "all-gather 62"));
  options.overlap = true;
  EXPECT_THAT(CallsOfACompleteStep(options),
              ElementsAre("reduce-scatter 40 in the batch", "reduce-scatter 22", "all-gather 22", "all-gather 40"));
}

// Ranks whose options disagree fail at the start. All ranks report an INVALID_ARGUMENT error that names the difference.
TEST(AggregationTest, DifferentStepsAreNamed) {
  struct Case {
    std::function<void(RankRun&)> change;
    std::string expected;
  };
  GroupStepOptions options;
  options.overlap = true;
  options.order = IssuePolicy::kChained;
  options.bucket_bytes = 256;
  const std::vector<Case> cases = {
      {[](RankRun& run) { run.options.bucket_bytes = 4096; }, "the number of buckets is 1 on rank 1 and "},
      {[](RankRun& run) { run.options.order = IssuePolicy::kFunneled; }, "the number of the issue policy is "},
  };
  for (const Case& c : cases) {
    const std::vector<RankState> states = RunGroup(3, RunOf(options), [&](int rank, RankRun& run) {
      if (rank == 1) c.change(run);
    });
    for (const RankState& state : states) {
      EXPECT_EQ(state.status.code(), absl::StatusCode::kInvalidArgument) << state.status;
      EXPECT_THAT(std::string(state.status.message()), HasSubstr(c.expected));
    }
  }
}

// A model that fails in its third batch, after backward has completed some gradients.
class FailingModel : public QuadraticModel {
 public:
  FailingModel() : QuadraticModel(500, 6) {}

  void SetHooks(BatchHooks hooks) override {
    hooks_ = std::move(hooks);
    QuadraticModel::SetHooks({hooks_.before_use, [this](size_t parameter) {
                                if (hooks_.gradient_ready && (batches_ < 2 || parameter > 2)) {
                                  hooks_.gradient_ready(parameter);
                                }
                              }});
  }
  absl::StatusOr<float> TrainBatch(const Batch& batch) override {
    absl::StatusOr<float> loss = QuadraticModel::TrainBatch(batch);
    if (batches_++ < 2) return loss;
    return absl::InternalError("the batch failed");
  }

 private:
  BatchHooks hooks_;
  int batches_ = 0;
};

// If a batch fails on one rank in the middle of backward, the step ends on every rank within the deadline. The ways run
// beside each other, because each waits for the deadline.
TEST(AggregationTest, AFailedBatchEndsEveryRank) {
  const std::vector<Way> ways = AllWays();
  RunRanks(static_cast<int>(ways.size()), [&](int way) {
    SCOPED_TRACE(ways[way].name);
    RankRun base = RunOf(ways[way].options);
    base.collective_timeout = absl::Seconds(2);
    const absl::Time begin = SteadyTime();
    const std::vector<RankState> states = RunGroup(3, base, [](int rank, RankRun& run) {
      if (rank == 1) run.make = [] { return std::make_unique<FailingModel>(); };
    });
    EXPECT_LT(SteadyTime() - begin, absl::Seconds(10));
    EXPECT_EQ(states[1].status, absl::InternalError("the batch failed"));
    for (int rank : {0, 2}) {
      EXPECT_THAT(states[rank].status.code(), AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable,
                                                    absl::StatusCode::kAborted, absl::StatusCode::kInvalidArgument))
          << states[rank].status;
    }
  });
}

// Without overlap, collectives have a time of their own, and no time counts as overlapped.
TEST(AggregationTest, CountsWhatWasHidden) {
  GroupStepOptions options = Plain();
  for (const RankState& state : RunGroup(2, RunOf(options))) {
    EXPECT_GT(state.progress.collective_seconds(), 0);
    EXPECT_EQ(state.progress.overlapped_seconds(), 0);
  }
}

// A group that holds back the parameters of the later layers until the next forward pass has used the first layer. It
// passes all other calls on at once.
class GatedGroup : public CountingGroup {
 public:
  explicit GatedGroup(Group& group) : CountingGroup(group) { in_batch = &not_watched_; }

  absl::Status Broadcast(const TensorList& values, int root) override {
    Await(values);
    return CountingGroup::Broadcast(values, root);
  }
  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    Await(values);
    return CountingGroup::AllGather(values, parts);
  }

  absl::Notification at_work;
  bool in_time = true;  // Whether each forward pass came in time.

 private:
  void Await(const TensorList& values) {
    if (values.size() == 40) in_time = at_work.WaitForNotificationWithTimeout(absl::Seconds(10)) && in_time;
  }

  const bool not_watched_ = false;
};

// A model whose first layer takes 200 ms in the second batch. After that it lets the GatedGroup pass the later layers'
// parameters on.
class FirstLayerModel : public QuadraticModel {
 public:
  static constexpr absl::Duration kFirstLayer = absl::Milliseconds(200);

  explicit FirstLayerModel(GatedGroup& group) : QuadraticModel(60, 3), group_(group) {}

  void SetHooks(BatchHooks hooks) override {
    hooks_ = std::move(hooks);
    QuadraticModel::SetHooks({[this](size_t parameter) {
                                if (hooks_.before_use) hooks_.before_use(parameter);
                                if (parameter > 0 || ++batches_ != 2) return;
                                absl::SleepFor(kFirstLayer);
                                group_.at_work.Notify();
                              },
                              hooks_.gradient_ready});
  }

 private:
  GatedGroup& group_;
  BatchHooks hooks_;
  int batches_ = 0;
};

// With rooted and sharded, the next forward pass uses the first layer while the later layers' parameters still travel.
// The time of the collectives beside it counts as overlapped.
TEST(AggregationTest, ParametersTravelDuringForward) {
  for (AggregationKind kind : {AggregationKind::kRooted, AggregationKind::kSharded}) {
    GroupStepOptions options;
    options.kind = kind;
    options.overlap = true;
    options.order = IssuePolicy::kFunneled;
    options.bucket_bytes = 100;
    const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
    RunRanks(2, [&](int rank) {
      GatedGroup group(*groups[rank]);
      RankRun run = RunOf(options);
      run.group = &group;
      run.steps = 2;
      run.make = [&] { return std::make_unique<FirstLayerModel>(group); };
      const RankState state = RunRank(run);
      EXPECT_TRUE(state.status.ok()) << state.status;
      EXPECT_TRUE(group.in_time);
      EXPECT_GT(state.progress.overlapped_seconds(), 0);
      EXPECT_LT(state.progress.overlapped_seconds(), 10);
    });
  }
}

}  // namespace
}  // namespace hooke
