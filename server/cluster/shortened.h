#ifndef HOOKE_SERVER_CLUSTER_SHORTENED_H_
#define HOOKE_SERVER_CLUSTER_SHORTENED_H_

// Texts from daemons, which may be of any length.

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/visible_text.h"

namespace hooke {

constexpr size_t kTextBytesMax = 2048;  // Longer texts from daemons are cut.

// Cuts a longer `text` to at most `bytes_max` bytes of whole UTF-8 characters and appends "...".
inline std::string Shortened(absl::string_view text, size_t bytes_max = kTextBytesMax) {
  return text.size() <= bytes_max ? std::string(text) : absl::StrCat(FirstBytes(text, bytes_max), "...");
}

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_SHORTENED_H_
