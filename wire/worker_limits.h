#ifndef HOOKE_WIRE_WORKER_LIMITS_H_
#define HOOKE_WIRE_WORKER_LIMITS_H_

// What a WorkerHello may say, as proto/coordinator.proto puts it: a worker refuses to start with more, the coordinator
// refuses one that says more.

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace hooke {

constexpr uint32_t kSlotsMax = 4096;  // At least 1.

// Of a worker, or of a site: 1 to 63 characters of [A-Za-z0-9._-].
inline bool IsNodeName(absl::string_view name) {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace hooke

#endif  // HOOKE_WIRE_WORKER_LIMITS_H_
