#include "worker/model/model.h"

#include <torch/csrc/autograd/function.h>

#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/model/linear.h"
#include "worker/model/networks.h"

// OpenBLAS has threads of its own, which LibTorch's setting does not limit. The symbol is weak because other BLAS
// libraries do not have this function.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int threads);

namespace hooke {
namespace {

constexpr uint64_t kInputValues = kImageSide * kImageSide;

NamedShape ShapeOf(const std::string& name, const torch::Tensor& tensor) {
  NamedShape shape;
  shape.name = name;
  for (int64_t extent : tensor.sizes()) shape.shape.push_back(static_cast<uint64_t>(extent));
  return shape;
}

// Views the next `tensor.numel()` floats of `memory` as a tensor of `tensor`'s shape, and moves `offset` past them.
torch::Tensor NextView(absl::Span<float> memory, const torch::Tensor& tensor, uint64_t& offset) {
  torch::Tensor view = torch::from_blob(memory.data() + offset, tensor.sizes(), torch::kFloat32);
  offset += static_cast<uint64_t>(tensor.numel());
  return view;
}

// Calls BatchHooks::gradient_ready after autograd has completed a parameter's gradient.
class GradientHook : public torch::autograd::FunctionPostHook {
 public:
  GradientHook(const BatchHooks& hooks, size_t parameter) : hooks_(hooks), parameter_(parameter) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (hooks_.gradient_ready) hooks_.gradient_ready(parameter_);
    return outputs;
  }

 private:
  const BatchHooks& hooks_;
  const size_t parameter_;
};

class TorchModel : public Model {
 public:
  explicit TorchModel(const NetworkKind& kind);

  const ModelLayout& layout() const override { return layout_; }
  const Architecture& architecture() const override { return architecture_; }
  uint64_t input_values() const override { return kInputValues; }
  uint32_t classes() const override { return kClasses; }
  absl::Status Bind(const Arena& arena) override;
  void SetHooks(BatchHooks hooks) override { hooks_ = std::move(hooks); }
  void Initialize(uint64_t seed) override;
  absl::StatusOr<float> TrainBatch(const Batch& batch) override;
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch) override;

 private:
  struct Tensors {
    torch::Tensor images;
    torch::Tensor labels;
  };
  absl::StatusOr<Tensors> Prepare(const Batch& batch);
  void FindAdded();
  void Hook();

  const Architecture architecture_;
  BatchHooks hooks_;
  std::shared_ptr<Network> network_;
  std::vector<torch::Tensor> parameters_;
  // Only the float buffers: batch norm's integer count of batches is not part of the model.
  std::vector<torch::Tensor> buffers_;
  ModelLayout layout_;
  absl::Span<float> gradients_;
  std::vector<LinearInPlaceImpl*> linear_;  // Layers of network_ that write their own gradients.
  // The gradients that autograd adds to: those of all parameters except the ones of linear_.
  std::vector<torch::Tensor> added_;
  // Indices of a layer's parameters.
  absl::flat_hash_map<const torch::nn::Module*, std::vector<size_t>> parameters_of_;
  // The gradient accumulators, one for each parameter. They are kept here because autograd itself holds them only
  // weakly.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};

TorchModel::TorchModel(const NetworkKind& kind)
    : architecture_{kind.name, kind.version, {1, kImageSide, kImageSide}}, network_(kind.make()) {
  for (const auto& item : network_->named_parameters()) {
    parameters_.push_back(item.value());
    layout_.parameters.push_back(ShapeOf(item.key(), item.value()));
  }
  for (const auto& item : network_->named_buffers()) {
    if (item.value().scalar_type() != torch::kFloat32) continue;
    buffers_.push_back(item.value());
    layout_.buffers.push_back(ShapeOf(item.key(), item.value()));
  }
}

absl::Status TorchModel::Bind(const Arena& arena) {
  if (arena.parameters().size() != layout_.parameter_values() || arena.buffers().size() != layout_.buffer_values()) {
    return absl::InvalidArgumentError(absl::StrCat("the arena holds ", arena.parameters().size(), " parameters and ",
                                                   arena.buffers().size(), " buffer values; the model has ",
                                                   layout_.parameter_values(), " and ", layout_.buffer_values()));
  }
  torch::NoGradGuard no_grad;
  gradients_ = arena.gradients();
  uint64_t offset = 0;
  uint64_t gradient_offset = 0;
  for (torch::Tensor& parameter : parameters_) {
    torch::Tensor view = NextView(arena.vector(), parameter, offset);
    view.copy_(parameter);
    parameter.set_data(view);
    // Autograd changes a gradient that exists in place. So the gradient stays where the collectives expect it.
    parameter.mutable_grad() = NextView(gradients_, parameter, gradient_offset);
  }
  FindAdded();
  for (torch::Tensor& buffer : buffers_) {
    torch::Tensor view = NextView(arena.vector(), buffer, offset);
    view.copy_(buffer);
    buffer.set_data(view);
  }
  Hook();
  return absl::OkStatus();
}

void TorchModel::FindAdded() {
  absl::flat_hash_set<const c10::TensorImpl*> written;
  for (const auto& module : network_->modules(/*include_self=*/false)) {
    auto* linear = module->as<LinearInPlaceImpl>();
    if (linear == nullptr || !linear->WritesGradients()) continue;
    linear_.push_back(linear);
    written.insert(linear->weight.unsafeGetTensorImpl());
    written.insert(linear->bias.unsafeGetTensorImpl());
  }
  for (const torch::Tensor& parameter : parameters_) {
    if (!written.contains(parameter.unsafeGetTensorImpl())) added_.push_back(parameter.grad());
  }
}

// Adds the gradient hooks. Called after the parameters have moved to the arena, because a move may give a parameter a
// new gradient accumulator.
void TorchModel::Hook() {
  torch::AutoGradMode with_grad(true);  // Without it a parameter has no accumulator.
  for (size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters_[i]));
    accumulators_.back()->add_post_hook(std::make_unique<GradientHook>(hooks_, i));
  }
  for (const auto& module : network_->modules(/*include_self=*/false)) {
    for (const torch::Tensor& parameter : module->parameters(/*recurse=*/false)) {
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i].is_same(parameter)) parameters_of_[module.get()].push_back(i);
      }
    }
  }
  network_->SetBeforeLayer([this](const torch::nn::Module& layer) {
    if (!hooks_.before_use || !network_->is_training()) return;
    for (size_t parameter : parameters_of_[&layer]) hooks_.before_use(parameter);
  });
}

// Sets LibTorch's default initial values for linear and convolution layers: uniform within 1/sqrt(fan in). The values
// come from a generator of our own, because all models of the process share the global one.
void TorchModel::Initialize(uint64_t seed) {
  torch::NoGradGuard no_grad;
  torch::Generator generator = at::detail::createCPUGenerator(seed);
  for (const auto& item : network_->named_modules("", /*include_self=*/false)) {
    torch::nn::Module* module = item.value().get();
    auto uniform = [&generator](torch::Tensor& weight, torch::Tensor& bias) {
      const int64_t inputs = weight.numel() / weight.size(0);
      const double bound = 1 / std::sqrt(static_cast<double>(inputs));
      weight.uniform_(-bound, bound, generator);
      if (bias.defined()) bias.uniform_(-bound, bound, generator);
    };
    if (auto* linear = module->as<torch::nn::LinearImpl>()) uniform(linear->weight, linear->bias);
    if (auto* conv = module->as<torch::nn::Conv2dImpl>()) uniform(conv->weight, conv->bias);
    if (auto* norm = module->as<torch::nn::BatchNorm2dImpl>()) {
      norm->weight.fill_(1);
      norm->bias.zero_();
      norm->running_mean.zero_();
      norm->running_var.fill_(1);
    }
  }
}

absl::StatusOr<TorchModel::Tensors> TorchModel::Prepare(const Batch& batch) {
  const int64_t samples = static_cast<int64_t>(batch.labels.size());
  if (samples == 0 || batch.pixels.size() != batch.labels.size() * kInputValues) {
    return absl::InvalidArgumentError(absl::StrCat("a batch has ", batch.pixels.size(), " pixels for ", samples,
                                                   " labels; the model wants ", kInputValues,
                                                   " for each, and a label"));
  }
  for (int64_t label : batch.labels) {
    if (label < 0 || label >= kClasses) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is out of range: the model knows classes 0 to ", kClasses - 1));
    }
  }
  // With one channel, row-major memory is channels-last as well; these strides tell LibTorch so. Convolutions and
  // pooling then run channels-last throughout, 1.5 times as fast on a CPU, while parameters stay row-major.
  Tensors tensors;
  tensors.images = torch::from_blob(const_cast<float*>(batch.pixels.data()), {samples, 1, kImageSide, kImageSide},
                                    {kImageSide * kImageSide, 1, kImageSide, 1}, torch::kFloat32);
  tensors.labels = torch::from_blob(const_cast<int64_t*>(batch.labels.data()), {samples}, torch::kInt64);
  return tensors;
}

absl::StatusOr<float> TorchModel::TrainBatch(const Batch& batch) {
  if (gradients_.empty()) return absl::FailedPreconditionError("the model is not bound to an arena: call Bind first");
  absl::StatusOr<Tensors> tensors = Prepare(batch);
  if (!tensors.ok()) return tensors.status();
  try {
    network_->train();
    for (torch::Tensor& gradient : added_) gradient.zero_();
    for (LinearInPlaceImpl* layer : linear_) layer->BeginBatch();
    torch::Tensor loss = torch::cross_entropy_loss(network_->forward(tensors->images), tensors->labels);
    loss.backward();
    for (LinearInPlaceImpl* layer : linear_) layer->EndBatch();
    return loss.item<float>();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch failed in a training step: ", error.what()));
  }
}

absl::StatusOr<Evaluation> TorchModel::Evaluate(const Batch& batch) {
  absl::StatusOr<Tensors> tensors = Prepare(batch);
  if (!tensors.ok()) return tensors.status();
  try {
    torch::NoGradGuard no_grad;
    network_->eval();
    torch::Tensor scores = network_->forward(tensors->images);
    Evaluation result;
    result.samples = batch.labels.size();
    result.correct = static_cast<uint64_t>(scores.argmax(1).eq(tensors->labels).sum().item<int64_t>());
    result.loss_sum = torch::cross_entropy_loss(scores, tensors->labels, {}, at::Reduction::Sum).item<double>();
    return result;
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch failed in an evaluation: ", error.what()));
  }
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const NetworkKind& kind : Networks()) names.push_back(kind.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelOptions& options) {
  if (options.threads < 1) return absl::InvalidArgumentError("a model needs at least one thread");
  for (const NetworkKind& kind : Networks()) {
    if (kind.name != options.name) continue;
    try {
      torch::set_num_threads(options.threads);
      if (openblas_set_num_threads != nullptr) openblas_set_num_threads(options.threads);
      return std::make_unique<TorchModel>(kind);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("LibTorch failed to build ", kind.name, ": ", error.what()));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no model \"", options.name, "\"; there are ", absl::StrJoin(ModelNames(), ", ")));
}

}  // namespace hooke
