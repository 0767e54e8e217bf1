#include "worker/model/networks.h"

#include <torch/nn/functional/padding.h>

#include <string>

namespace hooke {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv5x5(int64_t inputs, int64_t filters) {
  return nn::Conv2d(nn::Conv2dOptions(inputs, filters, 5).padding(2));
}

nn::Conv2d Conv3x3(int64_t inputs, int64_t filters, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(inputs, filters, 3).stride(stride).padding(1).bias(false));
}

// Applies ReLU after the maximum instead of before it, which is a quarter of the work. Values and gradients are the
// same, because both functions are monotone.
torch::Tensor PoolRelu(const torch::Tensor& x) { return torch::relu(torch::max_pool2d(x, 2)); }

}  // namespace

SmallMlp::SmallMlp()
    : fc1_(register_module("fc1", LinearInPlace(784, 128))),
      fc2_(register_module("fc2", LinearInPlace(128, kClasses))) {}

torch::Tensor SmallMlp::forward(torch::Tensor images) { return Run(fc2_, torch::relu(Run(fc1_, images.flatten(1)))); }

Mlp::Mlp()
    : fc1_(register_module("fc1", LinearInPlace(784, 512))),
      fc2_(register_module("fc2", LinearInPlace(512, 512))),
      fc3_(register_module("fc3", LinearInPlace(512, kClasses))) {}

torch::Tensor Mlp::forward(torch::Tensor images) {
  torch::Tensor x = torch::relu(Run(fc1_, images.flatten(1)));
  return Run(fc3_, torch::relu(Run(fc2_, x)));
}

LeNet::LeNet()
    : conv1_(register_module("conv1", Conv5x5(1, 32))),
      conv2_(register_module("conv2", Conv5x5(32, 64))),
      fc1_(register_module("fc1", LinearInPlace(64 * 7 * 7, 512))),
      fc2_(register_module("fc2", LinearInPlace(512, kClasses))) {}

torch::Tensor LeNet::forward(torch::Tensor images) {
  torch::Tensor x = PoolRelu(Run(conv1_, images));
  x = PoolRelu(Run(conv2_, x));
  return Run(fc2_, torch::relu(Run(fc1_, x.flatten(1))));
}

ResNet20::ResNet20() {
  conv_ = register_module("conv", Conv3x3(1, 16, 1));
  norm_ = register_module("norm", nn::BatchNorm2d(16));
  int64_t inputs = 16;
  for (int stage = 1; stage <= 3; ++stage) {
    const int64_t filters = int64_t{8} << stage;
    for (int place = 1; place <= 3; ++place) {
      blocks_.push_back(MakeBlock("stage" + std::to_string(stage) + "_" + std::to_string(place), inputs, filters));
      inputs = filters;
    }
  }
  fc_ = register_module("fc", LinearInPlace(64, kClasses));
}

ResNet20::Block ResNet20::MakeBlock(const std::string& name, int64_t inputs, int64_t filters) {
  Block block;
  block.filters = filters;
  block.stride = inputs == filters ? 1 : 2;
  block.conv1 = register_module(name + "_conv1", Conv3x3(inputs, filters, block.stride));
  block.norm1 = register_module(name + "_norm1", nn::BatchNorm2d(filters));
  block.conv2 = register_module(name + "_conv2", Conv3x3(filters, filters, 1));
  block.norm2 = register_module(name + "_norm2", nn::BatchNorm2d(filters));
  return block;
}

torch::Tensor ResNet20::Forward(Block& block, const torch::Tensor& x) {
  torch::Tensor y = torch::relu(Run(block.norm1, Run(block.conv1, x)));
  y = Run(block.norm2, Run(block.conv2, y));
  if (block.stride == 1) return torch::relu(y + x);
  // Option A of the paper: take every second pixel, and pad the new channels with zeros.
  namespace F = torch::nn::functional;
  torch::Tensor shortcut = x.slice(2, 0, x.size(2), 2).slice(3, 0, x.size(3), 2);
  const int64_t missing = block.filters - x.size(1);
  shortcut = F::pad(shortcut, F::PadFuncOptions({0, 0, 0, 0, missing / 2, missing - missing / 2}));
  return torch::relu(y + shortcut);
}

torch::Tensor ResNet20::forward(torch::Tensor images) {
  torch::Tensor x = torch::relu(Run(norm_, Run(conv_, images)));
  for (Block& block : blocks_) x = Forward(block, x);
  return Run(fc_, x.mean({2, 3}));
}

const std::vector<NetworkKind>& Networks() {
  static const auto& networks = *new std::vector<NetworkKind>{
      {"small-mlp", 1, [] { return std::make_shared<SmallMlp>(); }},
      {"mlp", 1, [] { return std::make_shared<Mlp>(); }},
      {"lenet", 1, [] { return std::make_shared<LeNet>(); }},
      {"resnet20", 1, [] { return std::make_shared<ResNet20>(); }},
  };
  return networks;
}

}  // namespace hooke
