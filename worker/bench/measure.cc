#include "worker/bench/measure.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"
#include "worker/bench/carriers.h"
#include "worker/bench/plan.h"
#include "worker/bench/timing.h"

namespace hooke {
namespace {

constexpr size_t kRoundsMin = 3;
constexpr size_t kRoundsMax = 25;
// If a call is shorter than this, several calls are timed together.
constexpr double kBatchUs = 200;
constexpr uint64_t kBatchMax = 16;
// A candidate that is much slower than the best is not timed again, unless it is the default. Much slower means that
// its time exceeds kLostFactor times the best time, and also kLostUs.
constexpr double kLostFactor = 3;
constexpr double kLostUs = 1000;

std::vector<ValueRange> EqualParts(uint64_t values, int ranks) {
  std::vector<ValueRange> parts;
  parts.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) parts.push_back({values * rank / ranks, values * (rank + 1) / ranks});
  return parts;
}

class Measurer {
 public:
  explicit Measurer(const MeasureOptions& options) : options_(options), start_(NowSeconds()) {}

  absl::StatusOr<Measured> Run() {
    const std::vector<PlannedCell> cells = PlanCells(options_.topology, options_.bytes_max);
    Measured measured;
    measured.cells_planned = cells.size();
    if (absl::Status status = ChooseCarrier(measured); !status.ok()) return status;
    if (absl::Status status = SetUp(cells); !status.ok()) return status;
    if (absl::Status status = AgreeOnTime(); !status.ok()) return status;
    const double time_max = absl::ToDoubleSeconds(options_.time_max);
    size_t operations_left = 5;  // The plan has five operations.
    for (size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
      while (end < cells.size() && cells[end].operation == cells[begin].operation) ++end;
      options_.on_operation(NameOf(cells[begin].operation));
      const double until = elapsed_ + (time_max - elapsed_) / static_cast<double>(operations_left--);
      for (size_t i = begin; i < end && elapsed_ < until; ++i) {
        const double share = (until - elapsed_) / static_cast<double>(end - i);
        if (absl::Status status = MeasureCell(cells[i], share, measured.measurements); !status.ok()) return status;
        ++measured.cells;
      }
    }
    return measured;
  }

 private:
  // A group with one of the tunings of Ways(), and the group's arena.
  struct Way {
    std::unique_ptr<Group> group;
    absl::Span<float> arena;
  };
  struct Timed {
    double us = 0;
    uint64_t batch = 1;
    bool lost = false;
    std::vector<double> times_us;
  };

  absl::Status ChooseCarrier(Measured& measured) {
    if (options_.topology.nodes == 1) return absl::OkStatus();
    options_.on_operation("messages between nodes");
    CarriersOptions carriers;
    carriers.time_max = options_.time_max / 10;
    carriers.bytes_max = std::min(carriers.bytes_max, options_.bytes_max);
    carriers.make_group = options_.make_group;
    absl::StatusOr<std::vector<CarrierTime>> times = MeasureCarriers(carriers);
    if (!times.ok()) return times.status();
    measured.carriers = *std::move(times);
    measured.between_nodes = FitCarrier(measured.carriers, options_.margin);
    between_nodes_ = measured.between_nodes;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Group>> MakeGroup(Tuning tuning) const {
    tuning.between_nodes = between_nodes_;
    return options_.make_group(tuning);
  }

  absl::Status SetUp(const std::vector<PlannedCell>& cells) {
    absl::StatusOr<std::unique_ptr<Group>> control = MakeGroup(Tuning());
    if (!control.ok()) return control.status();
    control_ = *std::move(control);
    std::vector<uint64_t> arena_bytes(Ways().size(), 0);
    std::vector<bool> used(Ways().size(), false);
    uint64_t private_bytes = 0;
    for (const PlannedCell& cell : cells) {
      for (const Candidate& one : cell.candidates) {
        uint64_t& bytes = cell.shared ? arena_bytes[one.way] : private_bytes;
        bytes = std::max(bytes, cell.bytes);
        used[one.way] = true;
      }
    }
    private_.resize(private_bytes / sizeof(float));
    ways_.resize(Ways().size());
    for (size_t way = 0; way < ways_.size(); ++way) {
      if (!used[way]) continue;
      absl::StatusOr<std::unique_ptr<Group>> group = MakeGroup(Ways()[way]);
      if (!group.ok()) return group.status();
      ways_[way].group = *std::move(group);
      if (arena_bytes[way] == 0) continue;
      absl::StatusOr<absl::Span<float>> arena =
          AllocateSharedValues<float>(*ways_[way].group, arena_bytes[way] / sizeof(float));
      if (!arena.ok()) return arena.status();
      ways_[way].arena = *arena;
    }
    return absl::OkStatus();
  }

  absl::Status AgreeOnTime() {
    double elapsed[] = {NowSeconds() - start_};
    absl::Status status = control_->AllReduce(TensorList(absl::MakeSpan(elapsed)), ReduceOp::kMax);
    elapsed_ = elapsed[0];
    return status;
  }

  absl::Status MeasureCell(const PlannedCell& cell, double seconds, std::vector<Measurement>& measurements) {
    const double until = elapsed_ + seconds;
    std::vector<Timed> timed(cell.candidates.size());
    double best_us = 0;
    for (size_t i = 0; i < timed.size(); ++i) {
      if (absl::Status status = Check(cell, cell.candidates[i]); !status.ok()) return status;
      if (absl::Status status = Time(cell, cell.candidates[i], timed[i]); !status.ok()) return status;
      if (i == 0 || timed[i].us < best_us) best_us = timed[i].us;
    }
    for (size_t i = 0; i < timed.size(); ++i) {
      Timed& one = timed[i];
      one.batch =
          std::max<uint64_t>(1, std::min<uint64_t>(kBatchMax, static_cast<uint64_t>(kBatchUs / std::max(one.us, 0.1))));
      one.lost = i > 0 && one.us > kLostUs && one.us > kLostFactor * best_us;
      if (!one.lost) one.times_us.clear();  // The first call was a warm-up.
    }
    for (size_t round = 0; round < kRoundsMax && (round < kRoundsMin || elapsed_ < until); ++round) {
      for (size_t i = 0; i < timed.size(); ++i) {
        if (timed[i].lost) continue;
        if (absl::Status status = Time(cell, cell.candidates[i], timed[i]); !status.ok()) return status;
      }
    }
    for (size_t i = 0; i < timed.size(); ++i) {
      measurements.push_back({cell.operation, cell.shared, cell.bytes, cell.candidates[i].choice,
                              Quantile(timed[i].times_us, 0.5), Quantile(timed[i].times_us, 0.25),
                              timed[i].times_us.size() * timed[i].batch});
    }
    return absl::OkStatus();
  }

  absl::Span<float> ValuesOf(const PlannedCell& cell, const Candidate& candidate) {
    const absl::Span<float> all = cell.shared ? ways_[candidate.way].arena : absl::MakeSpan(private_);
    return all.subspan(0, cell.bytes / sizeof(float));
  }

  absl::Status Call(const PlannedCell& cell, const Candidate& candidate) {
    Group& group = *ways_[candidate.way].group;
    const TensorList values(ValuesOf(cell, candidate));
    switch (cell.operation) {
      case Operation::kReduce:
        return group.Reduce(values, ReduceOp::kSum, 0);
      case Operation::kBroadcast:
        return group.Broadcast(values, 0);
      case Operation::kReduceScatter:
        return group.ReduceScatter(values, EqualParts(values.size(), group.size()), ReduceOp::kSum);
      case Operation::kAllGather:
        return group.AllGather(values, EqualParts(values.size(), group.size()));
      default:
        return group.AllReduce(values, ReduceOp::kSum);
    }
  }

  // Adds the slowest rank's time to `timed`. All ranks get the same time, and the same time since the start.
  absl::Status Time(const PlannedCell& cell, const Candidate& candidate, Timed& timed) {
    double seconds = 0;
    for (uint64_t i = 0; i < timed.batch; ++i) {
      // Without the barrier a root would run ahead, and calls would overlap.
      if (absl::Status status = control_->Barrier(); !status.ok()) return status;
      const double begin = NowSeconds();
      if (absl::Status status = Call(cell, candidate); !status.ok()) return status;
      seconds += NowSeconds() - begin;
    }
    double agreed[] = {seconds * 1e6 / static_cast<double>(timed.batch), NowSeconds() - start_};
    absl::Status status = control_->AllReduce(TensorList(absl::MakeSpan(agreed)), ReduceOp::kMax);
    if (!status.ok()) return status;
    timed.us = agreed[0];
    timed.times_us.push_back(agreed[0]);
    elapsed_ = agreed[1];
    return absl::OkStatus();
  }

  // Checks the result of one call. Values at three places tell which ranks contributed. All other values are 0, so that
  // repeated sums do not grow.
  absl::Status Check(const PlannedCell& cell, const Candidate& candidate) {
    const absl::Span<float> values = ValuesOf(cell, candidate);
    const int rank = control_->rank();
    const int ranks = control_->size();
    const std::vector<ValueRange> parts = EqualParts(values.size(), ranks);
    const uint64_t places[] = {0, values.size() / 2, values.size() - 1};
    for (uint64_t place : places) values[place] = static_cast<float>(rank + 1);
    if (absl::Status status = Call(cell, candidate); !status.ok()) return status;
    bool right = true;
    const int sum = ranks * (ranks + 1) / 2;
    for (uint64_t place : places) {
      auto expected = static_cast<float>(sum);
      bool has_it = cell.operation != Operation::kReduce || rank == 0;
      if (cell.operation == Operation::kBroadcast) expected = 1;
      for (int owner = 0; owner < ranks; ++owner) {
        const bool owns = place >= parts[owner].begin && place < parts[owner].end;
        if (owns && cell.operation == Operation::kAllGather) expected = static_cast<float>(owner + 1);
        if (cell.operation == Operation::kReduceScatter && owner == rank) has_it = owns;
      }
      if (has_it && values[place] != expected) right = false;
    }
    // No rank may clear values that another rank still reads.
    if (absl::Status status = control_->Barrier(); !status.ok()) return status;
    for (uint64_t place : places) values[place] = 0;
    if (right) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(NameOf(cell.operation), " of ", cell.bytes, " bytes by ",
                                            NameOf(candidate.choice.algorithm), " gave a wrong result on rank ", rank));
  }

  const MeasureOptions& options_;
  const double start_;
  double elapsed_ = 0;  // Seconds since the start, on the slowest rank.
  Tuning::BetweenNodes between_nodes_ = Tuning::BetweenNodes::kAuto;
  std::unique_ptr<Group> control_;
  std::vector<Way> ways_;
  std::vector<float> private_;
};

}  // namespace

absl::StatusOr<Measured> Measure(const MeasureOptions& options) { return Measurer(options).Run(); }

}  // namespace hooke
