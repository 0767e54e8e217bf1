#ifndef HOOKE_WORKER_MODEL_MODEL_H_
#define HOOKE_WORKER_MODEL_MODEL_H_

// A network whose parameters, gradients and float buffers lie in a rank's arena. The trainer sees only this interface
// and plain spans; model.cc hides LibTorch. A Model belongs to one thread; a process may have several.

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

// n samples: n * Model::input_values() floats in `pixels`, sample by sample, and n class numbers below Model::classes()
// in `labels`.
struct Batch {
  absl::Span<const float> pixels;
  absl::Span<const int64_t> labels;
};

struct Evaluation {
  uint64_t samples = 0;
  uint64_t correct = 0;
  double loss_sum = 0;  // Cross entropy, summed over the samples.
};

// Callbacks during TrainBatch, in its thread. `parameter` is an index into ModelLayout::parameters.
struct BatchHooks {
  // The forward pass is about to read this parameter. The parameter may still change until the call returns.
  std::function<void(size_t parameter)> before_use;
  // Backward has completed this parameter's gradient, and TrainBatch does not touch it again. Called once for each
  // parameter on which the loss depends.
  std::function<void(size_t parameter)> gradient_ready;
};

// Identifies the network of a model, for its use after training.
struct Architecture {
  std::string name;
  uint32_t version = 1;               // Higher if the network computes other outputs from the same parameters.
  std::vector<uint32_t> input_shape;  // Shape of one sample, outermost dimension first.
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelLayout& layout() const = 0;
  virtual const Architecture& architecture() const = 0;
  virtual uint64_t input_values() const = 0;  // Floats in one sample.
  virtual uint32_t classes() const = 0;

  // Moves the model into the arena: copies its values there, and from then on parameters, gradients and buffers are
  // views of it. The arena has the sizes of layout() and outlives the model. INVALID_ARGUMENT: the sizes differ. Called
  // once, before the first batch.
  virtual absl::Status Bind(const Arena& arena) = 0;

  // Sets the hooks from the next batch on; each may be null. The objects that the hooks use must live until the model
  // is gone or the hooks are replaced.
  virtual void SetHooks(BatchHooks hooks) = 0;

  // Sets fresh initial values. The same seed gives bitwise the same values on every rank.
  virtual void Initialize(uint64_t seed) = 0;

  // Runs forward and backward in training mode. Returns the mean loss over the batch. Writes the gradients of the mean
  // loss into the arena. INVALID_ARGUMENT: the batch has a wrong length, or a label is out of range.
  // FAILED_PRECONDITION: Bind was not called. INTERNAL: LibTorch failed.
  virtual absl::StatusOr<float> TrainBatch(const Batch& batch) = 0;

  // Runs forward in evaluation mode: batch norm uses its running statistics. Changes no value of the arena.
  virtual absl::StatusOr<Evaluation> Evaluate(const Batch& batch) = 0;
};

struct ModelOptions {
  std::string name;  // "small-mlp", "mlp", "lenet", "resnet20".
  int threads = 1;   // Threads of LibTorch's kernels in the calling thread; >= 1.
};

// Makes one of the built-in models. INVALID_ARGUMENT for an unknown name; the message lists the known ones.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelOptions& options);

std::vector<std::string> ModelNames();

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_MODEL_H_
