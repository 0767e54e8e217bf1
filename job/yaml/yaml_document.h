#ifndef HOOKE_JOB_YAML_YAML_DOCUMENT_H_
#define HOOKE_JOB_YAML_YAML_DOCUMENT_H_

// Reads a job file's text as one YAML document. It refuses some texts that yaml-cpp accepts although they are no job
// files. Pure.

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Reads a text that has exactly one document, in UTF-8, UTF-16 or UTF-32. An empty text gives a null node. `file` is
// the escaped name in messages. INVALID_ARGUMENT says "FILE:LINE: " or "FILE:LINE:COLUMN: " and the fault.
absl::StatusOr<YAML::Node> LoadYamlDocument(absl::string_view text, absl::string_view file);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_YAML_DOCUMENT_H_
