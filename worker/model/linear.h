#ifndef HOOKE_WORKER_MODEL_LINEAR_H_
#define HOOKE_WORKER_MODEL_LINEAR_H_

// A linear layer whose backward writes its parameters' gradients directly to their place in the arena.
//
// Autograd adds to a gradient that exists. So the gradient must first be zeroed, and the product is computed in other
// memory and then added. In a layer with many parameters and few samples this takes much of a step's time.
//
// Besides tests, only networks.h, linear.cc and model.cc include this file, because it includes LibTorch.

// We do not include torch/torch.h, which takes half as long again to compile.
#include <torch/nn/modules/linear.h>

namespace hooke {

// torch::nn::Linear for x of shape [n, inputs], except for the gradients. Between BeginBatch and EndBatch, backward
// overwrites the gradients that weight and bias have (mutable_grad). The layer acts like torch::nn::Linear in three
// cases: outside of a batch, under NoGradGuard, and if weight or bias had no gradient when the batch began.
//
// Only one backward may run at a time. Autograd's nodes for weight and bias and their hooks still run, after the
// gradients have been written.
class LinearInPlaceImpl : public torch::nn::LinearImpl {
 public:
  using LinearImpl::LinearImpl;

  // Whether weight and bias have gradients to write into.
  bool WritesGradients() const { return weight.grad().defined() && bias.defined() && bias.grad().defined(); }

  // Returns the layer's output. May be called several times in a batch; the gradients are then the sums.
  torch::Tensor forward(const torch::Tensor& x);

  // Begins a batch. Call it before the batch's first forward.
  void BeginBatch();
  // Ends a batch. Call it after backward. Zeroes the gradients if backward did not reach this layer.
  void EndBatch();

  // Called by backward only. Computes the gradients of weight and bias from the input `x` and `gradient`, the gradient
  // of the output.
  void AddGradients(const torch::Tensor& x, const torch::Tensor& gradient);

 private:
  bool writes_ = false;   // Whether backward writes gradients directly in this batch.
  bool written_ = false;  // Whether backward has done so in this batch; later gradients are added.
};
TORCH_MODULE(LinearInPlace);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_LINEAR_H_
