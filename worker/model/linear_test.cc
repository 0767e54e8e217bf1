#include "worker/model/linear.h"

#include <torch/csrc/autograd/function.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hooke {
namespace {

using torch::Tensor;

// A layer and a plain torch::nn::Linear with the same values. The layer's gradients hold NaN, which backward must
// overwrite.
struct Pair {
  explicit Pair(int64_t inputs, int64_t outputs) : layer(inputs, outputs), plain(inputs, outputs) {
    torch::NoGradGuard no_grad;
    plain->weight.copy_(layer->weight);
    plain->bias.copy_(layer->bias);
    layer->weight.mutable_grad() = torch::full({outputs, inputs}, std::nanf(""));
    layer->bias.mutable_grad() = torch::full({outputs}, std::nanf(""));
  }
  LinearInPlace layer;
  torch::nn::Linear plain;
};

void ExpectEqualGradients(const Pair& pair) {
  EXPECT_TRUE(torch::allclose(pair.layer->weight.grad(), pair.plain->weight.grad(), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(pair.layer->bias.grad(), pair.plain->bias.grad(), 1e-5, 1e-6));
}

// The output and all gradients equal autograd's, batch after batch, whatever the gradients held before. The gradients
// stay in their memory.
TEST(LinearInPlaceTest, IsLinear) {
  torch::manual_seed(1);
  Pair pair(5, 3);
  const void* place = pair.layer->weight.grad().data_ptr();
  for (int batch = 0; batch < 3; ++batch) {
    const Tensor values = torch::randn({4, 5});
    const Tensor x = values.clone().requires_grad_(), same = values.clone().requires_grad_();
    pair.plain->zero_grad();
    pair.layer->BeginBatch();
    const Tensor output = pair.layer(x), expected = pair.plain(same);
    EXPECT_TRUE(torch::allclose(output, expected, 1e-5, 1e-6));
    output.square().sum().backward();
    expected.square().sum().backward();
    pair.layer->EndBatch();
    ExpectEqualGradients(pair);
    EXPECT_TRUE(torch::allclose(x.grad(), same.grad(), 1e-5, 1e-6));
    EXPECT_EQ(pair.layer->weight.grad().data_ptr(), place);
  }
}

// An input that needs no gradient gets none.
TEST(LinearInPlaceTest, InputWithoutGradient) {
  torch::manual_seed(2);
  Pair pair(5, 3);
  const Tensor x = torch::randn({4, 5});
  pair.layer->BeginBatch();
  pair.layer(x).square().sum().backward();
  pair.plain(x).square().sum().backward();
  pair.layer->EndBatch();
  ExpectEqualGradients(pair);
  EXPECT_FALSE(x.grad().defined());
}

// A layer that is used twice in a batch gets the sum of both gradients.
TEST(LinearInPlaceTest, UsedTwice) {
  torch::manual_seed(3);
  Pair pair(4, 4);
  const Tensor x = torch::randn({6, 4});
  pair.layer->BeginBatch();
  pair.layer(torch::relu(pair.layer(x))).square().sum().backward();
  pair.plain(torch::relu(pair.plain(x))).square().sum().backward();
  pair.layer->EndBatch();
  ExpectEqualGradients(pair);
}

// A layer on which the loss does not depend gets gradients of zero.
TEST(LinearInPlaceTest, NotUsed) {
  Pair pair(4, 4);
  pair.layer->BeginBatch();
  pair.layer->EndBatch();
  EXPECT_EQ(pair.layer->weight.grad().abs().max().item<float>(), 0);
  EXPECT_EQ(pair.layer->bias.grad().abs().max().item<float>(), 0);
}

class Told : public torch::autograd::FunctionPostHook {
 public:
  explicit Told(std::function<void()> tell) : tell_(std::move(tell)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    tell_();
    return outputs;
  }

 private:
  const std::function<void()> tell_;
};

// A gradient's hook is called once, after the gradient has been written.
TEST(LinearInPlaceTest, HooksOfGradients) {
  torch::manual_seed(4);
  Pair pair(4, 4);
  const Tensor x = torch::randn({6, 4});
  pair.plain(torch::relu(pair.plain(x))).square().sum().backward();
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
  int told = 0;
  for (const Tensor& parameter : {pair.layer->weight, pair.layer->bias}) {
    accumulators.push_back(torch::autograd::impl::grad_accumulator(parameter));
    accumulators.back()->add_post_hook(std::make_unique<Told>([&] {
      ++told;
      ExpectEqualGradients(pair);
    }));
  }
  pair.layer->BeginBatch();
  pair.layer(torch::relu(pair.layer(x))).square().sum().backward();
  EXPECT_EQ(told, 2);
}

// Without gradients to write into, and under NoGradGuard, the layer is like torch::nn::Linear.
TEST(LinearInPlaceTest, WithoutGradients) {
  torch::manual_seed(5);
  Pair pair(4, 4);
  const Tensor x = torch::randn({6, 4});
  {
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::allclose(pair.layer(x), pair.plain(x), 1e-5, 1e-6));
  }
  pair.layer->weight.mutable_grad() = Tensor();
  pair.layer->bias.mutable_grad() = Tensor();
  pair.layer->BeginBatch();
  pair.layer(x).square().sum().backward();
  pair.layer->EndBatch();
  pair.plain(x).square().sum().backward();
  ExpectEqualGradients(pair);
}

// Without a bias autograd adds the gradients, and EndBatch does not zero them.
TEST(LinearInPlaceTest, WithoutBias) {
  torch::manual_seed(6);
  LinearInPlace layer(torch::nn::LinearOptions(4, 4).bias(false));
  layer->weight.mutable_grad() = torch::zeros({4, 4});
  layer->BeginBatch();
  layer(torch::randn({6, 4})).square().sum().backward();
  layer->EndBatch();
  EXPECT_GT(layer->weight.grad().abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace hooke
