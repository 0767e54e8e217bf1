#ifndef HOOKE_JOB_YAML_YAML_ERROR_H_
#define HOOKE_JOB_YAML_YAML_ERROR_H_

// Explains why a text is not YAML, for people who do not know yaml-cpp. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns a text that follows "FILE:LINE:COLUMN: ". It says what yaml-cpp's `message` about the line means, and what to
// do.
std::string YamlErrorText(absl::string_view message, absl::string_view line);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_YAML_ERROR_H_
