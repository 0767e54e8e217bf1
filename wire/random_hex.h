#ifndef HOOKE_WIRE_RANDOM_HEX_H_
#define HOOKE_WIRE_RANDOM_HEX_H_

// Random text for identities and keys that are sent over connections.

#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {

// Returns 8 * `words` hex digits from the system's source of randomness, so nobody can guess them.
inline std::string RandomHex(int words) {
  std::random_device random;
  std::string text;
  for (int i = 0; i < words; ++i) absl::StrAppend(&text, absl::Hex(random(), absl::kZeroPad8));
  return text;
}

}  // namespace hooke

#endif  // HOOKE_WIRE_RANDOM_HEX_H_
