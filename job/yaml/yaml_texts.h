#ifndef HOOKE_JOB_YAML_YAML_TEXTS_H_
#define HOOKE_JOB_YAML_YAML_TEXTS_H_

// Reads the value of a job file's key that is a list or a map of texts: `command` and `environment`.

#include <yaml-cpp/yaml.h>

#include "absl/status/statusor.h"
#include "job/job_keys.h"

namespace hooke {

// True if the file gives the node a tag. Without one, yaml-cpp gives plain scalars the tag "?" or none, and quoted ones
// "!".
bool HasTag(const YAML::Node& node);
std::string TagProblem(const YAML::Node& node);

// Returns the value of a key with texts. The message of INVALID_ARGUMENT has the form of ParseKeyValue's. A number is
// taken as the file spells it.
absl::StatusOr<KeyValue> ReadTexts(const JobKey& key, const YAML::Node& node);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_YAML_TEXTS_H_
