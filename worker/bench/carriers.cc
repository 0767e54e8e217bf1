#include "worker/bench/carriers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"
#include "worker/bench/timing.h"

namespace hooke {
namespace {

using BetweenNodes = Tuning::BetweenNodes;

constexpr BetweenNodes kCarriers[] = {BetweenNodes::kSockets, BetweenNodes::kMpi};
constexpr size_t kRoundsMin = 5;
constexpr size_t kRoundsMax = 100;

// The time of one call on the slowest rank, and the longest time since `start` on any rank. All ranks have the same
// numbers, so they agree on when to end.
struct Timed {
  double us = 0;
  double elapsed = 0;
};

absl::StatusOr<Timed> Time(Group& group, absl::Span<float> values, double start) {
  absl::Status status = group.Barrier();
  if (!status.ok()) return status;
  const double begin = NowSeconds();
  status = group.AllReduce(TensorList(values), ReduceOp::kMax);
  if (!status.ok()) return status;
  double agreed[] = {(NowSeconds() - begin) * 1e6, NowSeconds() - start};
  status = group.AllReduce(TensorList(absl::MakeSpan(agreed)), ReduceOp::kMax);
  if (!status.ok()) return status;
  return Timed{agreed[0], agreed[1]};
}

}  // namespace

absl::StatusOr<std::vector<CarrierTime>> MeasureCarriers(const CarriersOptions& options) {
  std::vector<std::unique_ptr<Group>> groups;
  for (BetweenNodes carrier : kCarriers) {
    Tuning tuning;
    tuning.between_nodes = carrier;
    absl::StatusOr<std::unique_ptr<Group>> group = options.make_group(tuning);
    if (!group.ok()) return group.status();
    groups.push_back(*std::move(group));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = 4; bytes <= options.bytes_max; bytes *= 64) sizes.push_back(bytes);
  std::vector<float> values(sizes.empty() ? 0 : sizes.back() / sizeof(float));
  std::vector<CarrierTime> times;
  const double start = NowSeconds();
  double until = 0;
  for (uint64_t bytes : sizes) {
    until += absl::ToDoubleSeconds(options.time_max) / static_cast<double>(sizes.size());
    const absl::Span<float> some = absl::MakeSpan(values).first(bytes / sizeof(float));
    std::vector<double> us[std::size(kCarriers)];
    double elapsed = 0;
    // The first round only warms up.
    for (size_t round = 0; round <= kRoundsMax && (round <= kRoundsMin || elapsed < until); ++round) {
      for (size_t i = 0; i < groups.size(); ++i) {
        const absl::StatusOr<Timed> timed = Time(*groups[i], some, start);
        if (!timed.ok()) return timed.status();
        elapsed = timed->elapsed;
        if (round > 0) us[i].push_back(timed->us);
      }
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      times.push_back({kCarriers[i], bytes, Quantile(us[i], 0.5), Quantile(us[i], 0.25)});
    }
  }
  return times;
}

BetweenNodes FitCarrier(const std::vector<CarrierTime>& times, double margin) {
  for (BetweenNodes carrier : kCarriers) {
    double logarithms = 0;
    size_t sizes = 0;
    for (const CarrierTime& own : times) {
      if (own.carrier != carrier) continue;
      const auto other = std::find_if(times.begin(), times.end(), [&own](const CarrierTime& one) {
        return one.carrier != own.carrier && one.bytes == own.bytes;
      });
      if (other == times.end()) continue;
      logarithms += std::log(other->quarter_us / own.median_us);
      ++sizes;
    }
    if (sizes > 0 && logarithms / static_cast<double>(sizes) > std::log(1 + margin)) return carrier;
  }
  return BetweenNodes::kAuto;
}

}  // namespace hooke
