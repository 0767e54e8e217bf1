#ifndef HOOKE_WORKER_TRAINING_GROUP_STEP_RANKS_H_
#define HOOKE_WORKER_TRAINING_GROUP_STEP_RANKS_H_

// For tests: ranks that are threads and step together, with each aggregation kind and issue order.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "worker/model/model.h"
#include "worker/model/quadratic_model.h"
#include "worker/training/group_step.h"

namespace hooke {

// Returns options for one all-reduce after backward.
inline GroupStepOptions Plain() {
  GroupStepOptions options;
  options.overlap = false;
  return options;
}

// One combination of options, and its name in test failures.
struct Way {
  std::string name;
  GroupStepOptions options;
};

// Returns each kind without overlap, and each kind with overlap and each order. Buckets of 256 bytes are small enough
// to divide the test's models into several.
inline std::vector<Way> AllWays() {
  std::vector<Way> ways;
  for (AggregationKind kind : {AggregationKind::kAllReduce, AggregationKind::kRooted, AggregationKind::kSharded}) {
    for (bool overlap : {false, true}) {
      for (IssuePolicy order : {IssuePolicy::kFunneled, IssuePolicy::kConcurrent, IssuePolicy::kChained}) {
        if (!overlap && order != IssuePolicy::kChained) continue;
        Way way;
        way.name = absl::StrCat("step ", static_cast<int>(kind), overlap ? ", overlap, " : ", no overlap, ",
                                std::string(NameOf(order)));
        way.options.kind = kind;
        way.options.overlap = overlap;
        way.options.order = order;
        way.options.bucket_bytes = 256;
        ways.push_back(std::move(way));
      }
    }
  }
  return ways;
}

using MakeTheModel = std::function<std::unique_ptr<Model>()>;

inline std::unique_ptr<Model> Quadratic() { return std::make_unique<QuadraticModel>(500, 6); }

// What a rank's run returns.
struct RankState {
  std::vector<float> vector;
  std::vector<float> losses;
  absl::Status status;
  v1::RankProgress progress;
};

struct RankRun {
  Group* group;
  GroupStepOptions options;
  MakeTheModel make = Quadratic;
  int steps = 12;
  // The deadline of collectives in training. Making the group has the default deadline.
  absl::Duration collective_timeout = absl::Seconds(20);
};

// Makes one step of a model. Returns the ranks' mean loss.
inline absl::StatusOr<float> RunBatch(GroupStep& step, Model& model, const Batch& batch, double learning_rate) {
  step.Begin();
  absl::StatusOr<float> loss = model.TrainBatch(batch);
  return loss.ok() ? step.Finish(*loss, learning_rate) : loss;
}

inline absl::Status Train(const RankRun& run, const Arena& arena, Model& model, Reporter& reporter, RankState* state) {
  GroupStep::Dependencies deps;
  deps.group = run.group;
  deps.layout = &model.layout();
  deps.arena = &arena;
  deps.optimizer = OptimizerOptions{.momentum = 0.5};
  deps.reporter = &reporter;
  deps.collective_timeout = run.collective_timeout;
  absl::StatusOr<std::unique_ptr<GroupStep>> group_step = GroupStep::Make(deps, run.options);
  if (!group_step.ok()) return group_step.status();
  model.SetHooks((*group_step)->Hooks());
  const auto rank = static_cast<uint64_t>(run.group->rank());
  for (int step = 0; step < run.steps; ++step) {
    std::vector<int64_t> labels = {run.group->rank(), 3};
    std::vector<float> pixels(labels.size() * model.input_values());
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>((i * 31 + rank * 7 + static_cast<uint64_t>(step)) % 13) / 13;
    }
    absl::StatusOr<float> loss = RunBatch(**group_step, model, {pixels, labels}, 0.1);
    if (!loss.ok()) return loss.status();
    state->losses.push_back(*loss);
    // Awaits the parameters after every fourth step and the last one, as a caller does that sometimes needs the vector.
    if (step % 4 != 3 && step + 1 < run.steps) continue;
    if (absl::Status status = (*group_step)->AwaitParameters(); !status.ok()) return status;
    if (absl::Status status = run.group->Barrier(); !status.ok()) return status;
  }
  state->vector.assign(arena.vector().begin(), arena.vector().end());
  return absl::OkStatus();
}

inline RankState RunRank(const RankRun& run) {
  RankState state;
  std::unique_ptr<Model> model = run.make();
  const ModelLayout& layout = model->layout();
  absl::StatusOr<Arena> arena = Arena::Make(
      {.parameters = layout.parameter_values(), .buffers = layout.buffer_values(), .statistics = kGroupStepStatistics},
      [&](uint64_t values) -> absl::StatusOr<ArenaMemory> {
        absl::StatusOr<absl::Span<float>> memory = AllocateSharedValues<float>(*run.group, values);
        if (!memory.ok()) return memory.status();
        return ArenaMemory{*memory, nullptr};
      });
  state.status = arena.ok() ? model->Bind(*arena) : arena.status();
  if (!state.status.ok()) return state;
  model->Initialize(5);
  run.group->SetDeadline(run.collective_timeout);
  Reporter reporter{ReporterOptions()};
  state.status = Train(run, *arena, *model, reporter, &state);
  state.progress = reporter.Progress();
  return state;
}

// Runs a group of `ranks` threads and returns their results. `change` may make one rank's run differ from the others'.
inline std::vector<RankState> RunGroup(int ranks, const RankRun& base,
                                       const std::function<void(int rank, RankRun&)>& change = nullptr) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks);
  std::vector<RankState> states(ranks);
  RunRanks(ranks, [&](int rank) {
    RankRun run = base;
    run.group = groups[rank].get();
    if (change) change(rank, run);
    states[rank] = RunRank(run);
  });
  return states;
}

inline RankRun RunOf(const GroupStepOptions& options) {
  RankRun run;
  run.group = nullptr;
  run.options = options;
  return run;
}

inline void ExpectNear(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
  EXPECT_LE(most, tolerance);
}

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_GROUP_STEP_RANKS_H_
