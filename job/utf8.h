#ifndef HOOKE_JOB_UTF8_H_
#define HOOKE_JOB_UTF8_H_

// Splits text into UTF-8 characters. Pure.

#include <cstddef>

#include "absl/strings/string_view.h"

namespace hooke {

struct Utf8Character {
  char32_t point = 0;
  size_t bytes = 1;
  bool valid = false;
};

// Returns the first character of `text`, which must not be empty. If the text begins with bytes that are not UTF-8 (RFC
// 3629), returns one byte and marks it as not valid.
Utf8Character FirstCharacter(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_JOB_UTF8_H_
