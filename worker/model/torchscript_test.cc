#include "worker/model/torchscript.h"

#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/data/idx_dataset.h"
#include "worker/model/networks.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr Normalization kNormalization = {0.2860405969887955, 0.3530242445149223};

// A network with values from a fixed seed, and a model file with the same values.
struct Trained {
  std::shared_ptr<Network> network;
  ModelFile file;
};

Trained Train(const NetworkKind& kind) {
  Trained trained;
  torch::NoGradGuard no_grad;
  torch::manual_seed(7);
  trained.network = kind.make();
  trained.network->eval();
  auto add = [&trained](const std::string& name, const torch::Tensor& tensor) {
    trained.file.tensors.push_back({name, {tensor.sizes().begin(), tensor.sizes().end()}});
    const float* values = tensor.data_ptr<float>();
    trained.file.values.insert(trained.file.values.end(), values, values + tensor.numel());
  };
  for (const auto& item : trained.network->named_parameters()) add(item.key(), item.value());
  for (const auto& item : trained.network->named_buffers()) {
    if (item.value().scalar_type() != torch::kFloat32) continue;
    item.value().uniform_(0.5, 1.5);
    add(item.key(), item.value());
  }
  trained.file.metadata = {{"architecture", kind.name},    {"architecture_version", absl::StrCat(kind.version)},
                           {"input_shape", "[1, 28, 28]"}, {"input_type", "uint8"},
                           {"input_scale", "255"},         {"mean", "0.2860405969887955"},
                           {"std", "0.3530242445149223"},  {"classes", "10"},
                           {"hooke_job", "bars-1"}};
  return trained;
}

torch::Tensor RawImages(int64_t count) {
  torch::manual_seed(11);
  return torch::randint(0, 256, {count, kImageSide, kImageSide}, torch::kUInt8);
}

// Normalizes like IdxDataset::WriteImages.
torch::Tensor Normalized(const torch::Tensor& raw) {
  const PixelScale scale = ScaleOf(kNormalization);
  return (raw.to(torch::kFloat32) * scale.factor + scale.offset).reshape({-1, 1, kImageSide, kImageSide});
}

float Farthest(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().max().item<float>(); }

class TorchScriptTest : public ::testing::Test {
 protected:
  TorchScriptTest() { std::filesystem::create_directories(folder_); }
  ~TorchScriptTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/torchscript_test_", getpid());
  const std::string path_ = folder_ + "/model.pt";
};

// For each built-in network, the file alone gives the network's scores from raw images. It takes every shape and type
// that docs/export.md promises, and any number of images, not only the traced number. The comparison has a tolerance,
// because kernels may round in another order.
TEST_F(TorchScriptTest, GivesTheScoresOfTheNetwork) {
  torch::NoGradGuard no_grad;
  for (const NetworkKind& kind : Networks()) {
    SCOPED_TRACE(kind.name);
    const Trained trained = Train(kind);
    ASSERT_EQ(WriteTorchScript(trained.file, path_), absl::OkStatus());
    torch::jit::Module module = torch::jit::load(path_);
    for (const int64_t count : {1, 2, 37}) {
      const torch::Tensor raw = RawImages(count);
      const torch::Tensor expected = trained.network->forward(Normalized(raw));
      const float largest = expected.abs().max().item<float>();
      ASSERT_GT(largest, 1e-2f);
      const float rounding = 1e-6f * std::max(largest, 1.0f);
      const torch::Tensor scores = module.forward({raw}).toTensor();
      ASSERT_EQ(scores.sizes(), (std::vector<int64_t>{count, kClasses}));
      EXPECT_LE(Farthest(scores, expected), rounding);
      EXPECT_LE(Farthest(module.forward({raw.unsqueeze(1)}).toTensor(), expected), rounding);
      EXPECT_LE(Farthest(module.forward({raw.flatten(1)}).toTensor(), expected), rounding);
      for (const torch::ScalarType type : {torch::kFloat32, torch::kFloat64}) {
        EXPECT_LE(Farthest(module.forward({raw.to(type) / 255}).toTensor(), expected), 10 * rounding);
      }
    }
  }
}

// The module has the tensor names and the metadata of the safetensors file.
TEST_F(TorchScriptTest, KeepsNamesAndMetadata) {
  const Trained trained = Train(Networks().back());
  ASSERT_EQ(WriteTorchScript(trained.file, path_), absl::OkStatus());
  const torch::jit::Module module = torch::jit::load(path_);
  std::set<std::string> names;
  for (const auto& item : module.named_parameters()) names.insert(item.name);
  for (const auto& item : module.named_buffers()) names.insert(item.name);
  std::set<std::string> expected;
  for (const NamedShape& shape : trained.file.tensors) expected.insert(shape.name);
  EXPECT_EQ(names, expected);
  const auto metadata = module.attr("metadata").toGenericDict();
  EXPECT_EQ(metadata.size(), trained.file.metadata.size());
  EXPECT_EQ(metadata.at("mean").toStringRef(), "0.2860405969887955");
  EXPECT_EQ(metadata.at("hooke_job").toStringRef(), "bars-1");
}

// Images of another size are refused, and the error names the right shape. They are not cut into images of the right
// size.
TEST_F(TorchScriptTest, RefusesImagesOfAnotherShape) {
  ASSERT_EQ(WriteTorchScript(Train(Networks().front()).file, path_), absl::OkStatus());
  torch::jit::Module module = torch::jit::load(path_);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{28, 28}, {2, 3, 28, 28}, {4, 14, 14}, {784}}) {
    try {
      module.forward({torch::zeros(shape)});
      ADD_FAILURE() << "took images of " << shape.size() << " dimensions";
    } catch (const std::exception& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr("images have the shape [n, 28, 28]"));
    }
  }
}

// No module is made if a model file's metadata are missing, or describe a network that this program does not build. The
// test uses the smallest network.
TEST_F(TorchScriptTest, RefusesWhatItCannotBuild) {
  const struct {
    std::string error;
    std::function<void(ModelFile&)> change;
  } cases[] = {
      {"the metadata has no \"mean\"", [](ModelFile& file) { file.metadata.erase("mean"); }},
      {"this program has no network \"vgg\"", [](ModelFile& file) { file.metadata["architecture"] = "vgg"; }},
      {"the model is version 7 of small-mlp; this program builds version 1",
       [](ModelFile& file) { file.metadata["architecture_version"] = "7"; }},
      {"input [1, 32, 32]", [](ModelFile& file) { file.metadata["input_shape"] = "[1, 32, 32]"; }},
      {"100 classes", [](ModelFile& file) { file.metadata["classes"] = "100"; }},
      {"the model has 3 tensors; its network has 4", [](ModelFile& file) { file.tensors.pop_back(); }},
      {"the network has no tensor \"fc4.bias\" of shape [10]",
       [](ModelFile& file) { file.tensors.back().name = "fc4.bias"; }},
      {"the network has no tensor \"fc2.bias\" of shape [2, 5]",
       [](ModelFile& file) {
         file.tensors.back().shape = {2, 5};
       }},
  };
  for (const auto& one : cases) {
    ModelFile file = Train(Networks().front()).file;
    one.change(file);
    EXPECT_THAT(std::string(WriteTorchScript(file, path_).message()), HasSubstr(one.error));
    EXPECT_FALSE(std::filesystem::exists(path_)) << one.error;
  }
}

// If the file cannot be written, or the disk is full, the error says so.
TEST_F(TorchScriptTest, SaysThatTheDiskIsFull) {
  const ModelFile file = Train(Networks().front()).file;
  EXPECT_THAT(std::string(WriteTorchScript(file, "/dev/full").message()),
              HasSubstr("/dev/full: cannot be written: No space left on device"));
  EXPECT_THAT(std::string(WriteTorchScript(file, folder_ + "/none/model.pt").message()),
              HasSubstr("cannot be written: No such file or directory"));
}

}  // namespace
}  // namespace hooke
