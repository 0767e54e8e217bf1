#ifndef HOOKE_JOB_VISIBLE_TEXT_H_
#define HOOKE_JOB_VISIBLE_TEXT_H_

// Tells whether text is visible, and escapes text from outside so that it cannot control a terminal. Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

// True for valid UTF-8 without control characters and line separators that has at least one visible character.
bool IsVisibleText(absl::string_view text);

// Escapes everything that a terminal would act on or not show: control characters, bytes that are not UTF-8, and
// invisible characters such as U+FEFF. "\e[31m" becomes "\\x1b[31m", U+FEFF becomes "\\u{feff}". Quotes and backslashes
// are not escaped, so a second call changes nothing.
std::string Escaped(absl::string_view text);

// Returns the start of the text: at most `bytes_max` bytes, without the first part of a character that does not fit.
absl::string_view FirstBytes(absl::string_view text, size_t bytes_max);

// Returns the text escaped and in quotes. Of a longer text it shows at most the first 60 bytes.
std::string Quoted(absl::string_view text);

// Returns the items as an enumeration: "a", "a and b", "a, b and c". There must be at least one.
std::string ListText(const std::vector<std::string>& items);

}  // namespace hooke

#endif  // HOOKE_JOB_VISIBLE_TEXT_H_
