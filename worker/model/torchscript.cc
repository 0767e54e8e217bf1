#include "worker/model/torchscript.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/script.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "files/write_bytes.h"
#include "wire/model_metadata.h"
#include "worker/data/idx_dataset.h"
#include "worker/model/networks.h"

namespace hooke {
namespace {

namespace jit = torch::jit;

// The module's method `forward`. $0 is the number of raw values in a sample, $1 its shape, $2 the largest raw value,
// and $3 the shape in error messages. As in torchvision, a tensor of bytes holds 0 to 255 and a tensor of floats 0 to
// 1. 6 means float32.
constexpr char kForward[] = R"(
def forward(self, images: Tensor) -> Tensor:
    assert images.dim() > 1 and images.numel() == images.size(0) * $0, "images have the shape [n, $3]"
    if images.is_floating_point():
        images = images * $2
    inputs = images.to(6) * self.input_factor + self.input_offset
    return self.scores(inputs.reshape([-1, $1]))
)";

absl::StatusOr<const NetworkKind*> FindKind(const v1::ModelDescription& model) {
  for (const NetworkKind& kind : Networks()) {
    if (kind.name != model.architecture()) continue;
    if (kind.version == model.architecture_version()) return &kind;
    return absl::FailedPreconditionError(absl::StrCat("the model is version ", model.architecture_version(), " of ",
                                                      kind.name, "; this program builds version ", kind.version,
                                                      ": use the programs of the Hooke that trained it"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this program has no network \"", model.architecture(), "\"; export the model as safetensors"));
}

absl::Status CheckInput(const v1::ModelDescription& model) {
  const std::vector<int64_t> shape(model.input_shape().begin(), model.input_shape().end());
  if (shape == std::vector<int64_t>{1, kImageSide, kImageSide} && model.classes() == kClasses &&
      model.input_scale() == kPixelMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the metadata say: input [", absl::StrJoin(shape, ", "), "], scale ",
                                                 model.input_scale(), ", ", model.classes(), " classes; ",
                                                 model.architecture(), " has [1, ", kImageSide, ", ", kImageSide, "], ",
                                                 kPixelMax, " and ", kClasses));
}

// Returns the tensors that make up the model: parameters and float buffers.
std::map<std::string, torch::Tensor> TensorsOf(const Network& network) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& item : network.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : network.named_buffers()) {
    if (item.value().scalar_type() == torch::kFloat32) tensors[item.key()] = item.value();
  }
  return tensors;
}

absl::Status Fill(const ModelFile& model, std::map<std::string, torch::Tensor>& tensors) {
  if (model.tensors.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", model.tensors.size(), " tensors; its network has ", tensors.size()));
  }
  const float* values = model.values.data();
  for (const NamedShape& shape : model.tensors) {
    const auto found = tensors.find(shape.name);
    const std::vector<int64_t> sizes(shape.shape.begin(), shape.shape.end());
    if (found == tensors.end() || found->second.sizes() != sizes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the network has no tensor \"", shape.name, "\" of shape [", absl::StrJoin(sizes, ", "), "]"));
    }
    found->second.copy_(torch::from_blob(const_cast<float*>(values), sizes, torch::kFloat32));
    values += shape.values();
  }
  return absl::OkStatus();
}

// Makes a module that holds the tensors. "stage1_1_conv1.weight" goes into a submodule stage1_1_conv1, so that names
// are those of the safetensors file.
jit::Module Hold(const Network& network, const std::shared_ptr<jit::CompilationUnit>& unit) {
  jit::Module module("__torch__.HookeModel", unit);
  std::map<std::string, jit::Module> layers;
  for (const auto& [name, tensor] : TensorsOf(network)) {
    const std::pair<std::string, std::string> path = absl::StrSplit(name, absl::MaxSplits('.', 1));
    const auto [layer, is_new] = layers.try_emplace(path.first, "__torch__." + path.first, unit);
    layer->second.register_parameter(path.second, tensor, /*is_buffer=*/!tensor.requires_grad());
    if (is_new) module.register_module(path.first, layer->second);
  }
  return module;
}

// Adds the method `scores`, which maps normalized images to scores. It is traced from `network`, whose tensors the
// module holds.
void TraceScores(Network& network, jit::Module& module) {
  const auto run = [&network](jit::Stack inputs) { return jit::Stack{network.forward(inputs[0].toTensor())}; };
  const auto no_name = [](const torch::autograd::Variable&) { return std::string(); };
  // Two samples, because the tracer could take a dimension of 1 for a constant.
  const jit::Stack example = {torch::zeros({2, 1, kImageSide, kImageSide})};
  const auto traced =
      jit::tracer::trace(example, run, no_name, /*strict=*/true, /*force_outplace=*/false, &module, {"normalized"});
  const c10::QualifiedName name(*module.type()->name(), "scores");
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(name, traced.first->graph));
}

void AddForward(const v1::ModelDescription& description, jit::Module& module) {
  const PixelScale scale = ScaleOf({description.mean(), description.deviation()});
  module.register_attribute("input_factor", c10::FloatType::get(), double{scale.factor});
  module.register_attribute("input_offset", c10::FloatType::get(), double{scale.offset});
  uint64_t values = 1;
  for (const uint32_t extent : description.input_shape()) values *= extent;
  module.define(absl::Substitute(kForward, values, absl::StrJoin(description.input_shape(), ", "),
                                 absl::StrCat(description.input_scale(), ".0"),
                                 absl::StrCat(kImageSide, ", ", kImageSide)));
}

absl::Status Failed(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": cannot be written: ", std::strerror(error), "; choose a file elsewhere, or make room"));
}

}  // namespace

absl::Status WriteTorchScript(const ModelFile& model, const std::string& path) {
  const absl::StatusOr<v1::ModelDescription> description = ReadModelMetadata(model.metadata);
  if (!description.ok()) return description.status();
  const absl::StatusOr<const NetworkKind*> kind = FindKind(*description);
  if (!kind.ok()) return kind.status();
  if (absl::Status status = CheckInput(*description); !status.ok()) return status;
  std::ostringstream bytes;
  try {
    torch::NoGradGuard no_grad;
    const std::shared_ptr<Network> network = (*kind)->make();
    network->eval();
    std::map<std::string, torch::Tensor> tensors = TensorsOf(*network);
    if (absl::Status status = Fill(model, tensors); !status.ok()) return status;
    jit::Module module = Hold(*network, std::make_shared<jit::CompilationUnit>());
    TraceScores(*network, module);
    AddForward(*description, module);
    c10::Dict<std::string, std::string> metadata;
    for (const auto& [key, text] : model.metadata) metadata.insert(key, text);
    module.register_attribute("metadata", c10::DictType::create(c10::StringType::get(), c10::StringType::get()),
                              metadata);
    module.save(bytes);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch failed to make a TorchScript module: ", error.what()));
  }
  const int error = WriteBytes(path, bytes.str(), Durable::kYes);
  return error == 0 ? absl::OkStatus() : Failed(path, error);
}

}  // namespace hooke
