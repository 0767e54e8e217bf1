#ifndef HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_
#define HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_

// Explains why a text is not YAML to people who do not know yaml-cpp. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns text that completes "FILE:LINE:COLUMN: ": the meaning of yaml-cpp's message about that line, and the remedy.
std::string YamlErrorText(absl::string_view message, absl::string_view line);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_
