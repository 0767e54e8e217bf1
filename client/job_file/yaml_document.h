#ifndef HOOKE_CLIENT_JOB_FILE_YAML_DOCUMENT_H_
#define HOOKE_CLIENT_JOB_FILE_YAML_DOCUMENT_H_

// A job file's text as one YAML document, and what yaml-cpp takes without a word although it is no job file. Pure.

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// The document of a text that has exactly one. INVALID_ARGUMENT: what is wrong, after FILE:LINE: or FILE:LINE:COLUMN:.
// An empty text gives a null node. `file` is what messages call it, escaped. The text is UTF-8, UTF-16 or UTF-32.
absl::StatusOr<YAML::Node> LoadYamlDocument(absl::string_view text, absl::string_view file);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_YAML_DOCUMENT_H_
