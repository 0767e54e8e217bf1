#ifndef HOOKE_JOB_YAML_KEY_NAMES_H_
#define HOOKE_JOB_YAML_KEY_NAMES_H_

// The names of a job file's keys and sections, from the table of keys. A path is a name with its sections, such as
// "averaging.rule"; the section "" is the file itself. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns the path of a name in a section.
std::string KeyPath(absl::string_view section, absl::string_view name);

bool IsSection(absl::string_view path);

// Returns the names of keys and sections directly in a section, in the order of the documentation.
std::vector<std::string> NamesIn(absl::string_view section);

// Suggests a similar name in the same section. If there is none, suggests a key elsewhere with exactly that name. ""
// if there is none, either; otherwise like " (did you mean \"averaging\"?)".
std::string DidYouMean(absl::string_view section, absl::string_view name);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_KEY_NAMES_H_
