#ifndef HOOKE_JOB_UTF8_H_
#define HOOKE_JOB_UTF8_H_

// Text as its characters. Pure.

#include <cstddef>

#include "absl/strings/string_view.h"

namespace hooke {

struct Utf8Character {
  char32_t point = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The character that `text`, which is not empty, begins with. Where its bytes are not UTF-8 (RFC 3629), one byte that
// is not valid.
Utf8Character FirstCharacter(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_JOB_UTF8_H_
