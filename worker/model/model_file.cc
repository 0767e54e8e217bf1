#include "worker/model/model_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "A model file holds little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

constexpr size_t kLengthBytes = 8;

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", what, "; name a file that `hooke export` wrote as safetensors"));
}

struct Tensor {
  NamedShape named;
  uint64_t begin = 0;  // The values are the bytes [begin, end), counted from the first tensor's values.
  uint64_t end = 0;
};

// Returns a list of `count` whole numbers, or of any length if `count` is negative. nullopt if `json` is no such list.
std::optional<std::vector<uint64_t>> Numbers(const nlohmann::json& json, int count = -1) {
  if (!json.is_array() || (count >= 0 && json.size() != static_cast<size_t>(count))) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const nlohmann::json& number : json) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// Whether the tensor's range of bytes has the length that its shape needs.
bool Fills(const Tensor& tensor) {
  uint64_t bytes = sizeof(float);
  for (const uint64_t extent : tensor.named.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return tensor.end >= tensor.begin && tensor.end - tensor.begin == bytes;
}

std::optional<Tensor> TensorOf(const std::string& name, const nlohmann::json& entry) {
  if (!entry.is_object() || entry.value("dtype", nlohmann::json()) != "F32") return std::nullopt;
  std::optional<std::vector<uint64_t>> shape = Numbers(entry.value("shape", nlohmann::json()));
  const std::optional<std::vector<uint64_t>> offsets = Numbers(entry.value("data_offsets", nlohmann::json()), 2);
  if (!shape.has_value() || !offsets.has_value()) return std::nullopt;
  Tensor tensor{{name, *std::move(shape)}, (*offsets)[0], (*offsets)[1]};
  if (!Fills(tensor)) return std::nullopt;
  return tensor;
}

absl::Status TakeMetadata(const std::string& path, const nlohmann::json& entries, ModelFile& model) {
  if (!entries.is_object()) return Bad(path, "its metadata are no pairs of text");
  for (const auto& [key, text] : entries.items()) {
    if (!text.is_string()) return Bad(path, absl::StrCat("\"", key, "\" of its metadata is no text"));
    model.metadata[key] = text.get<std::string>();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelFile> ReadModelFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) return Bad(path, "it is shorter than its header");
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > bytes.size() - kLengthBytes) return Bad(path, "it is shorter than its header");
  const absl::string_view values = absl::string_view(bytes).substr(kLengthBytes + header_bytes);
  const auto header = nlohmann::json::parse(bytes.data() + kLengthBytes, values.data(), nullptr,
                                            /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad(path, "its header is no JSON object");
  ModelFile model;
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (absl::Status status = TakeMetadata(path, entry, model); !status.ok()) return status;
      continue;
    }
    std::optional<Tensor> tensor = TensorOf(name, entry);
    if (!tensor.has_value()) return Bad(path, absl::StrCat("\"", name, "\" is no float32 tensor"));
    tensors.push_back(*std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.begin < b.begin; });
  uint64_t next = 0;
  for (Tensor& tensor : tensors) {
    if (tensor.begin != next) return Bad(path, absl::StrCat("its tensors do not join at byte ", next));
    next = tensor.end;
    model.tensors.push_back(std::move(tensor.named));
  }
  if (next != values.size()) {
    return Bad(path, absl::StrCat("it has ", values.size(), " bytes of values instead of ", next));
  }
  model.values.resize(values.size() / sizeof(float));
  if (!values.empty()) std::memcpy(model.values.data(), values.data(), values.size());
  return model;
}

}  // namespace hooke
