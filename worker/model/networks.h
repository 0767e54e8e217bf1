#ifndef HOOKE_WORKER_MODEL_NETWORKS_H_
#define HOOKE_WORKER_MODEL_NETWORKS_H_

// The built-in networks, all for 28 x 28 grey images and 10 classes. Besides tests, only networks.cc, model.cc and
// torchscript.cc include this file, because it includes LibTorch.

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/model/linear.h"

namespace hooke {

inline constexpr int64_t kImageSide = 28;
inline constexpr int64_t kClasses = 10;

class Network : public torch::nn::Module {
 public:
  // `images` has the shape [n, 1, 28, 28]. Returns scores of shape [n, 10].
  virtual torch::Tensor forward(torch::Tensor images) = 0;

  // The callback of SetBeforeLayer. forward calls it before a layer reads its parameters.
  using BeforeLayer = std::function<void(const torch::nn::Module& layer)>;
  void SetBeforeLayer(BeforeLayer before_layer) { before_layer_ = std::move(before_layer); }

 protected:
  template <typename Layer>
  torch::Tensor Run(Layer& layer, const torch::Tensor& x) {
    if (before_layer_) before_layer_(*layer);
    return layer(x);
  }

 private:
  BeforeLayer before_layer_;
};

// Linear layers 784 - 128 - 10, with ReLU between them: the smallest network, to try a cluster with.
class SmallMlp : public Network {
 public:
  SmallMlp();
  torch::Tensor forward(torch::Tensor images) override;

 private:
  LinearInPlace fc1_{nullptr}, fc2_{nullptr};
};

// Linear layers 784 - 512 - 512 - 10, with ReLU between them.
class Mlp : public Network {
 public:
  Mlp();
  torch::Tensor forward(torch::Tensor images) override;

 private:
  LinearInPlace fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

// conv 5x5 32 - ReLU - pool 2 - conv 5x5 64 - ReLU - pool 2 - 512 - ReLU - 10.
class LeNet : public Network {
 public:
  LeNet();
  torch::Tensor forward(torch::Tensor images) override;

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  LinearInPlace fc1_{nullptr}, fc2_{nullptr};
};

// He et al., arXiv 1512.03385, section 4.2, with n = 3: 3x3 convolutions with 16, 32 and 64 filters, and shortcuts
// without parameters.
class ResNet20 : public Network {
 public:
  ResNet20();
  torch::Tensor forward(torch::Tensor images) override;

 private:
  struct Block {
    torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
    torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
    int64_t stride = 1;
    int64_t filters = 16;
  };

  Block MakeBlock(const std::string& name, int64_t inputs, int64_t filters);
  torch::Tensor Forward(Block& block, const torch::Tensor& x);

  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  std::vector<Block> blocks_;
  LinearInPlace fc_{nullptr};
};

struct NetworkKind {
  std::string name;
  // The network's version. It is raised whenever the network begins to compute other outputs from the same parameters.
  // So a model that was trained with an older version is not mistaken for a current one.
  uint32_t version = 1;
  std::function<std::shared_ptr<Network>()> make;
};

const std::vector<NetworkKind>& Networks();

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_NETWORKS_H_
