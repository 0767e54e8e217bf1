#include "job/model_file/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

constexpr uint64_t kValuesMax = uint64_t{1} << 53;
constexpr uint64_t kSaturated = uint64_t{1} << 63;

uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) || product > kSaturated ? kSaturated : product;
}

uint64_t CountOf(const TensorShape& tensor) {
  uint64_t count = 1;
  for (const uint64_t extent : tensor.shape) count = SaturatingProduct(count, extent);
  return count;
}

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

uint64_t CountValues(const std::vector<TensorShape>& tensors) {
  uint64_t sum = 0;
  for (const TensorShape& tensor : tensors) {
    const uint64_t count = CountOf(tensor);
    sum = count >= kSaturated - sum ? kSaturated : sum + count;
  }
  return sum;
}

absl::StatusOr<std::string> SafetensorsHeader(const std::vector<TensorShape>& tensors, const Metadata& metadata) {
  if (CountValues(tensors) > kValuesMax) return absl::InvalidArgumentError("the model has more than 2^53 values");
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    nlohmann::ordered_json& entries = header["__metadata__"] = nlohmann::ordered_json::object();
    for (const auto& [key, text] : metadata) entries[key] = text;
  }
  std::set<absl::string_view> names;
  uint64_t begin = 0;
  for (const TensorShape& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", tensor.name, "\" is empty, reserved or given twice as the name of a tensor"));
    }
    const uint64_t end = begin + 4 * CountOf(tensor);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string json = header.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return absl::StrCat(LittleEndian(json.size()), json);
}

}  // namespace hooke
