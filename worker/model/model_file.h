#ifndef HOOKE_WORKER_MODEL_MODEL_FILE_H_
#define HOOKE_WORKER_MODEL_MODEL_FILE_H_

// Reads a model that `hooke export` wrote as safetensors; client/export/safetensors.h describes the format. Trusts no
// byte of the file.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/model/model_layout.h"

namespace hooke {

struct ModelFile {
  std::map<std::string, std::string> metadata;
  std::vector<NamedShape> tensors;  // In the order of their values.
  std::vector<float> values;        // Of all tensors, row-major, without gaps.
};

// NOT_FOUND: the file cannot be read. INVALID_ARGUMENT: it is no safetensors file of float32 tensors without gaps; the
// message says where. Memory is taken by the file's size, never by a number in it.
absl::StatusOr<ModelFile> ReadModelFile(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_MODEL_FILE_H_
