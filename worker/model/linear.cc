#include "worker/model/linear.h"

#include <torch/csrc/autograd/custom_function.h>

namespace hooke {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// A pointer to a layer, in a form that autograd's graph can store.
struct Layer : torch::CustomClassHolder {
  explicit Layer(LinearInPlaceImpl* layer) : pointer(layer) {}
  LinearInPlaceImpl* const pointer;
};

// The layer as an autograd function: x W' + b. `layer` outlives the graph.
class InPlace : public torch::autograd::Function<InPlace> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        LinearInPlaceImpl* layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = c10::IValue::make_capsule(c10::make_intrusive<Layer>(layer));
    context->saved_data["input has a gradient"] = x.requires_grad();
    return torch::addmm(bias, x, weight.t());
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    LinearInPlaceImpl* layer =
        c10::static_intrusive_pointer_cast<Layer>(context->saved_data["layer"].toCapsule())->pointer;
    const Tensor& gradient = gradients[0];
    layer->AddGradients(context->get_saved_variables()[0], gradient);
    Tensor of_input;
    if (context->saved_data["input has a gradient"].toBool()) of_input = gradient.mm(layer->weight);
    return {of_input, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

torch::Tensor LinearInPlaceImpl::forward(const torch::Tensor& x) {
  if (!torch::GradMode::is_enabled() || !writes_) return LinearImpl::forward(x);
  return InPlace::apply(x, weight, bias, this);
}

void LinearInPlaceImpl::BeginBatch() {
  writes_ = WritesGradients();
  written_ = false;
}

void LinearInPlaceImpl::AddGradients(const torch::Tensor& x, const torch::Tensor& gradient) {
  torch::NoGradGuard no_grad;
  if (written_) {
    weight.mutable_grad().addmm_(gradient.t(), x);
    bias.mutable_grad().add_(gradient.sum(0));
    return;
  }
  torch::mm_out(weight.mutable_grad(), gradient.t(), x);
  torch::sum_out(bias.mutable_grad(), gradient, 0);
  written_ = true;
}

void LinearInPlaceImpl::EndBatch() {
  if (writes_ && !written_) {
    weight.mutable_grad().zero_();
    bias.mutable_grad().zero_();
  }
  writes_ = false;
}

}  // namespace hooke
