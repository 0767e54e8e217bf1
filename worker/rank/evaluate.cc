#include "worker/rank/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "algorithms/sharding.h"
#include "worker/exchange/agreement.h"

namespace hooke {
namespace {

constexpr uint64_t kBatch = 250;
constexpr double kLossUnit = 1e-6;  // Losses are summed as integers, so that the number of ranks hardly matters.
constexpr double kMostLossPerSample = 1e6;  // Limit for a diverged model, whose loss may be infinite.

}  // namespace

absl::StatusOr<Evaluation> EvaluateInGroup(Group& group, Model& model, const Samples& test) {
  const Range mine = EvenPart(test.count, {static_cast<uint64_t>(group.rank()), static_cast<uint64_t>(group.size())});
  std::vector<uint32_t> indices;
  std::vector<float> pixels(std::min(kBatch, mine.size()) * test.values);
  std::vector<int64_t> labels(std::min(kBatch, mine.size()));
  std::array<uint64_t, 3> sums = {mine.size(), 0, 0};
  for (uint64_t first = mine.begin; first < mine.end; first += indices.size()) {
    indices.resize(std::min(kBatch, mine.end - first));
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(first));
    const absl::Span<float> inputs = absl::MakeSpan(pixels).first(indices.size() * test.values);
    const absl::Span<int64_t> classes = absl::MakeSpan(labels).first(indices.size());
    test.read(indices, inputs, classes);
    absl::StatusOr<Evaluation> part = model.Evaluate({inputs, classes});
    if (!part.ok()) return part.status();
    sums[1] += part->correct;
    const double most = kMostLossPerSample * static_cast<double>(indices.size());
    const double loss = std::isfinite(part->loss_sum) ? std::min(part->loss_sum, most) : most;
    sums[2] += static_cast<uint64_t>(loss / kLossUnit);
  }
  if (absl::Status status = SumNumbers(group, absl::MakeSpan(sums)); !status.ok()) return status;
  return Evaluation{sums[0], sums[1], static_cast<double>(sums[2]) * kLossUnit};
}

v1::CenterEvaluated EvaluatedMessage(const Evaluation& result, uint64_t step, double epoch) {
  v1::CenterEvaluated evaluated;
  evaluated.set_step(step);
  evaluated.set_epoch(epoch);
  evaluated.set_samples(result.samples);
  evaluated.set_accuracy(static_cast<double>(result.correct) / static_cast<double>(result.samples));
  evaluated.set_loss(result.loss_sum / static_cast<double>(result.samples));
  return evaluated;
}

}  // namespace hooke
