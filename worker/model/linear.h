#ifndef HOOKE_WORKER_MODEL_LINEAR_H_
#define HOOKE_WORKER_MODEL_LINEAR_H_

// A linear layer whose backward writes its parameters' gradients where they are to be. Autograd adds to a gradient that
// exists: it has to be zero first, a product goes to memory of its own, and is then added. Of a layer of many
// parameters and few samples that is much of a step's time. Included by networks.h and model.cc only: it brings in
// LibTorch.

// Not torch/torch.h, which takes half as long again to compile.
#include <torch/nn/modules/linear.h>

namespace hooke {

// torch::nn::Linear for x of shape [n, inputs], but for gradients: between BeginBatch and EndBatch backward writes into
// those that weight and bias have (mutable_grad), whatever they held before. Otherwise, without gradients (NoGradGuard)
// and unless both had one when the batch began, it is torch::nn::Linear. One backward at a time; autograd's nodes for
// weight and bias run as always, their hooks with them, when the gradients have been written.
class LinearInPlaceImpl : public torch::nn::LinearImpl {
 public:
  using LinearImpl::LinearImpl;

  // Whether weight and bias have gradients to write into.
  bool WritesGradients() const { return weight.grad().defined() && bias.defined() && bias.grad().defined(); }

  // As often as wanted in a batch: the gradients are the sums.
  torch::Tensor forward(const torch::Tensor& x);

  // Before the first forward of a batch.
  void BeginBatch();
  // After backward: gradients that nothing was written to are zero.
  void EndBatch();

  // For backward alone: the gradients of weight and bias that `gradient`, of the output for the input x, gives.
  void AddGradients(const torch::Tensor& x, const torch::Tensor& gradient);

 private:
  bool writes_ = false;   // In this batch.
  bool written_ = false;  // Already.
};
TORCH_MODULE(LinearInPlace);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_LINEAR_H_
