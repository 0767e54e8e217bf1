#ifndef HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
#define HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_

// Text as a terminal shows it: making it safe, measuring it, cutting it to fit. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Makes a peer's text safe to print: it cannot steer the terminal. Control characters and those that change the writing
// direction become spaces. Bytes that are not UTF-8 become U+FFFD.
std::string Printable(absl::string_view text);

// Columns that `text` takes. A wide character (Chinese, Japanese, Korean, emoji) takes two, a mark that joins the
// character before it none, any other one. A byte that is not UTF-8 takes one.
int DisplayWidth(absl::string_view text);

// Cuts `text` to at most `width` columns, between two characters, and ends it with "…" if it was too wide. `text` must
// be printable: an escape sequence could be cut in two.
std::string CutToWidth(absl::string_view text, int width);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
