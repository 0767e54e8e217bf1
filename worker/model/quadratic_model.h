#ifndef HOOKE_WORKER_MODEL_QUADRATIC_MODEL_H_
#define HOOKE_WORKER_MODEL_QUADRATIC_MODEL_H_

// A model without LibTorch, for tests. The gradients pull its parameters w towards the batch's mean pixel s. The loss
// is the mean of (w - s)^2 / 2 over the parameters. Each parameter's gradient is w - s. The mean's factor 1 / values is
// left out, so that the gradient is easy to compute by hand. One float buffer counts the batches seen.
//
// w may consist of several tensors. Forward reads them from the first to the last, and backward completes them from the
// last to the first.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/model.h"

namespace hooke {

class QuadraticModel : public Model {
 public:
  explicit QuadraticModel(uint64_t values, uint64_t tensors = 1) {
    for (uint64_t i = 0; i < tensors; ++i) {
      const uint64_t begin = values * i / tensors;
      layout_.parameters.push_back({i == 0 ? "w" : "w" + std::to_string(i), {values * (i + 1) / tensors - begin}});
      begins_.push_back(begin);
    }
    begins_.push_back(values);
    layout_.buffers.push_back({"batches", {}});
  }

  const ModelLayout& layout() const override { return layout_; }
  const Architecture& architecture() const override { return architecture_; }
  uint64_t input_values() const override { return 1; }
  uint32_t classes() const override { return 10; }

  absl::Status Bind(const Arena& arena) override {
    parameters_ = arena.parameters();
    buffers_ = arena.buffers();
    gradients_ = arena.gradients();
    return absl::OkStatus();
  }

  void SetHooks(BatchHooks hooks) override { hooks_ = std::move(hooks); }

  void Initialize(uint64_t seed) override {
    std::fill(parameters_.begin(), parameters_.end(), static_cast<float>(seed));
    buffers_[0] = 0;
  }

  absl::StatusOr<float> TrainBatch(const Batch& batch) override {
    double target = 0;
    for (float pixel : batch.pixels) target += pixel / static_cast<double>(batch.pixels.size());
    double loss = 0;
    const size_t tensors = layout_.parameters.size();
    for (size_t tensor = 0; tensor < tensors; ++tensor) {
      if (hooks_.before_use) hooks_.before_use(tensor);
      for (uint64_t i = begins_[tensor]; i < begins_[tensor + 1]; ++i) {
        const double offset = parameters_[i] - target;
        loss += offset * offset / 2 / static_cast<double>(parameters_.size());
      }
    }
    buffers_[0] += 1;
    for (size_t tensor = tensors; tensor-- > 0;) {
      for (uint64_t i = begins_[tensor]; i < begins_[tensor + 1]; ++i) {
        gradients_[i] = static_cast<float>(parameters_[i] - target);
      }
      if (hooks_.gradient_ready) hooks_.gradient_ready(tensor);
    }
    return static_cast<float>(loss);
  }

  // Evaluates by the first parameter. A sample counts as correct when that parameter is within 1 of it.
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch) override {
    Evaluation result;
    result.samples = batch.labels.size();
    for (float pixel : batch.pixels) {
      const float offset = parameters_[0] - pixel;
      result.correct += std::abs(offset) < 1 ? 1 : 0;
      result.loss_sum += offset * offset / 2;
    }
    return result;
  }

 private:
  const Architecture architecture_{"quadratic", 1, {1}};
  BatchHooks hooks_;
  ModelLayout layout_;
  std::vector<uint64_t> begins_;  // Index of each tensor's first value; the last element is the end of the last tensor.
  absl::Span<float> parameters_;
  absl::Span<float> buffers_;
  absl::Span<float> gradients_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_QUADRATIC_MODEL_H_
