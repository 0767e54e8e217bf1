#ifndef HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
#define HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_

// Text on a terminal: makes it safe, measures it, and cuts it to fit. Pure.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Makes text from a peer safe to print, so that it cannot steer the terminal. Control characters become spaces, and so
// do characters that change the writing direction. Bytes that are not UTF-8 become U+FFFD.
std::string Printable(absl::string_view text);

// Returns the columns that `text` takes. A wide character (Chinese, Japanese, Korean, emoji) takes two. A mark that
// joins the character before it takes none, and so does an invisible character. Any other character takes one, and so
// does a byte that is not UTF-8.
int DisplayWidth(absl::string_view text);

// Cuts `text` to at most `width` columns, between two characters, and ends it with "…" if it was too wide. `text` must
// come from Printable: an escape sequence could be cut in two.
std::string CutToWidth(absl::string_view text, int width);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_TERMINAL_TEXT_H_
