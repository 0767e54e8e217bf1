#ifndef HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_
#define HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_

// What is wrong with a text that is not YAML, for somebody who does not know yaml-cpp. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Completes "FILE:LINE:COLUMN: ": what yaml-cpp's message about that line means, and how to mend it.
std::string YamlErrorText(absl::string_view message, absl::string_view line);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_YAML_ERROR_H_
