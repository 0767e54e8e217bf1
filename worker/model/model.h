#ifndef HOOKE_WORKER_MODEL_MODEL_H_
#define HOOKE_WORKER_MODEL_MODEL_H_

// A network whose parameters, gradients and float buffers lie in a rank's arena. The trainer sees this interface and
// plain spans; LibTorch is known to model.cc alone. A Model belongs to one thread; several live in one process.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/model/arena.h"
#include "worker/model/model_layout.h"

namespace hooke {

// n samples: pixels is n * Model::input_values() floats, sample by sample; labels is n class numbers below
// Model::classes().
struct Batch {
  absl::Span<const float> pixels;
  absl::Span<const int64_t> labels;
};

struct Evaluation {
  uint64_t samples = 0;
  uint64_t correct = 0;
  double loss_sum = 0;  // Cross entropy, summed over the samples.
};

// Where a batch is. Called in TrainBatch, by its thread; `parameter` counts ModelLayout::parameters.
struct BatchHooks {
  // The forward pass is about to read this parameter: until the call returns it may still change.
  std::function<void(size_t parameter)> before_use;
  // Backward has completed this parameter's gradient, once for each that the loss depends on. From now on TrainBatch
  // touches it no more.
  std::function<void(size_t parameter)> gradient_ready;
};

// Which network a model is, for those who use it after its training.
struct Architecture {
  std::string name;
  uint32_t version = 1;               // Grows when the network computes something else from the same parameters.
  std::vector<uint32_t> input_shape;  // Of one sample, outermost first.
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelLayout& layout() const = 0;
  virtual const Architecture& architecture() const = 0;
  virtual uint64_t input_values() const = 0;  // Floats of one sample.
  virtual uint32_t classes() const = 0;

  // Moves the model into the arena: its values are copied there, and from now on parameters, gradients and buffers are
  // views of it. The arena has the sizes of layout() and outlives the model. INVALID_ARGUMENT where sizes differ.
  // Called once, before the first batch.
  virtual absl::Status Bind(const Arena& arena) = 0;

  // From the next batch on; either may be null. They are called as long as the model trains: what they use outlives it,
  // or is replaced before it ends.
  virtual void SetHooks(BatchHooks hooks) = 0;

  // Fresh initial values; the same seed gives the same values, bit by bit, on every rank.
  virtual void Initialize(uint64_t seed) = 0;

  // Forward and backward in training mode: the arena's gradients become those of the mean loss over the batch, which is
  // returned. INVALID_ARGUMENT: a batch of a wrong length, or a label out of range.
  virtual absl::StatusOr<float> TrainBatch(const Batch& batch) = 0;

  // Forward in evaluation mode (batch norm uses its running statistics). Changes nothing.
  virtual absl::StatusOr<Evaluation> Evaluate(const Batch& batch) = 0;
};

struct ModelOptions {
  std::string name;  // "mlp", "lenet", "resnet20".
  int threads = 1;   // Of LibTorch's kernels in the calling thread; >= 1.
};

// INVALID_ARGUMENT for an unknown name, listing those there are.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelOptions& options);

std::vector<std::string> ModelNames();

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_MODEL_H_
