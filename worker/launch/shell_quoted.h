#ifndef HOOKE_WORKER_LAUNCH_SHELL_QUOTED_H_
#define HOOKE_WORKER_LAUNCH_SHELL_QUOTED_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Returns the text as one word of a shell script, whatever characters it has.
inline std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_SHELL_QUOTED_H_
