#ifndef HOOKE_JOB_MODEL_FILE_SAFETENSORS_HEADER_H_
#define HOOKE_JOB_MODEL_FILE_SAFETENSORS_HEADER_H_

// Begins a model's file in the format safetensors, of Hugging Face's package of that name. Pure.
//
//   8 bytes    length N of the header, little-endian
//   N bytes    JSON, filled up with spaces so that the values begin at a multiple of 8:
//              {"__metadata__": {"key": "text"},
//               "conv1.weight": {"dtype": "F32", "shape": [32, 1, 5, 5], "data_offsets": [0, 3200]}, ...}
//   the rest   the values; data_offsets are bytes from here
//
// Example: one scalar s = 1.0 without metadata:
//   38 00 00 00 00 00 00 00  {"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} and 3 spaces  00 00 80 3f

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hooke {

// A float32 tensor. The tensors of a file follow one another, row-major.
struct TensorShape {
  std::string name;
  std::vector<uint64_t> shape;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Returns the bytes that come before the values in the file. INVALID_ARGUMENT if a name is empty, repeated or
// "__metadata__", or if there are more than 2^53 values.
absl::StatusOr<std::string> SafetensorsHeader(const std::vector<TensorShape>& tensors, const Metadata& metadata);

// The number of values in all tensors together; 2^63 if there are more.
uint64_t CountValues(const std::vector<TensorShape>& tensors);

}  // namespace hooke

#endif  // HOOKE_JOB_MODEL_FILE_SAFETENSORS_HEADER_H_
