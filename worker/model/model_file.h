#ifndef HOOKE_WORKER_MODEL_MODEL_FILE_H_
#define HOOKE_WORKER_MODEL_MODEL_FILE_H_

// Reads a model that `hooke export` wrote as safetensors; client/export/safetensors.h describes the format. No byte of
// the file is trusted.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/model/model_layout.h"

namespace hooke {

struct ModelFile {
  std::map<std::string, std::string> metadata;
  std::vector<NamedShape> tensors;  // In the order of their values.
  std::vector<float> values;        // Values of all tensors, each row-major, without gaps.
};

// Reads the file. NOT_FOUND: it cannot be read. INVALID_ARGUMENT: it is no safetensors file of float32 tensors without
// gaps; the message says why. The file's size limits the memory that is taken, never a number in the file.
absl::StatusOr<ModelFile> ReadModelFile(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_MODEL_FILE_H_
