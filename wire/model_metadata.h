#ifndef HOOKE_WIRE_MODEL_METADATA_H_
#define HOOKE_WIRE_MODEL_METADATA_H_

// The description of a model as the metadata of a model file: pairs of text, listed in docs/export.md. The client
// writes them, and whoever makes another format of the file reads them. Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// INVALID_ARGUMENT names the first field that is out of the range which proto/parameter_server.proto gives it.
absl::Status CheckModelDescription(const v1::ModelDescription& model);

// In the order of the page. Numbers are the shortest decimals that give the same double again.
std::vector<std::pair<std::string, std::string>> ModelMetadata(const v1::ModelDescription& model);

// What ModelMetadata wrote, among other keys. INVALID_ARGUMENT names the key that is missing or wrong.
absl::StatusOr<v1::ModelDescription> ReadModelMetadata(const std::map<std::string, std::string>& metadata);

// The shortest decimal that gives the same double again: "0.28604059698879553".
std::string ShortestDecimal(double number);

}  // namespace hooke

#endif  // HOOKE_WIRE_MODEL_METADATA_H_
