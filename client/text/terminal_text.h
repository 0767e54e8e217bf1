#ifndef HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
#define HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_

// Text as a terminal shows it: what it may contain, how many columns it takes, and how it is cut to fit. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// A peer's text, made safe to print: it cannot steer the terminal. Control characters, and those that turn the
// direction of writing, become spaces. Bytes that are not UTF-8 become U+FFFD.
std::string Printable(absl::string_view text);

// Columns that `text` takes: two for a wide character (Chinese, Japanese, Korean, emoji), none for a mark that joins
// the character before it, one for any other. A byte that is not UTF-8 takes one.
int DisplayWidth(absl::string_view text);

// `text` in at most `width` columns. A text that is too wide is cut between two characters and ends in "…". Give it
// printable text only: it would cut an escape sequence in two.
std::string CutToWidth(absl::string_view text, int width);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
