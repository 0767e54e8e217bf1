#ifndef HOOKE_WIRE_MODEL_METADATA_H_
#define HOOKE_WIRE_MODEL_METADATA_H_

// A model's description as the metadata of a model file: pairs of text, listed in docs/export.md. The client writes
// them; programs that convert the file to another format read them. Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Checks that all fields are set and in range. INVALID_ARGUMENT names the first field outside its range in
// proto/parameter_server.proto.
absl::Status CheckModelDescription(const v1::ModelDescription& model);

// Returns the pairs in the order of docs/export.md. Each number is written as the shortest decimal that reads back as
// the same double.
std::vector<std::pair<std::string, std::string>> ModelMetadata(const v1::ModelDescription& model);

// Reads what ModelMetadata wrote; other keys are ignored. INVALID_ARGUMENT names the key that is missing or no number,
// or the field that is out of range.
absl::StatusOr<v1::ModelDescription> ReadModelMetadata(const std::map<std::string, std::string>& metadata);

// Returns the shortest decimal that reads back as the same double, like "0.28604059698879553".
std::string ShortestDecimal(double number);

}  // namespace hooke

#endif  // HOOKE_WIRE_MODEL_METADATA_H_
