#ifndef HOOKE_JOB_VISIBLE_TEXT_H_
#define HOOKE_JOB_VISIBLE_TEXT_H_

// Text that somebody else wrote: may it be a path, and how is it printed so that it cannot steer a terminal? Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Valid UTF-8 without control characters and line separators, with at least one character that is not blank.
bool IsVisibleText(absl::string_view text);

// The text with everything escaped that a terminal would act on or not show: control characters, bytes that are not
// UTF-8, and invisible characters such as U+FEFF. "\e[31m" becomes "\\x1b[31m", U+FEFF becomes "\\u{feff}".
// Quotes and backslashes stay: a text that is escaped already stays as it is.
std::string Escaped(absl::string_view text);

// Escaped and in quotes, cut after 60 bytes.
std::string Quoted(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_JOB_VISIBLE_TEXT_H_
