#ifndef HOOKE_WIRE_WORKER_LIMITS_H_
#define HOOKE_WIRE_WORKER_LIMITS_H_

// Limits of what a worker sends to the coordinator, as proto/coordinator.proto and proto/worker.proto document them. A
// worker with options beyond those of a WorkerHello does not start, and the coordinator refuses such a WorkerHello.

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace hooke {

constexpr uint32_t kSlotsMax = 4096;  // The most slots of a worker. The least is 1.
constexpr uint32_t kGpusMax = 1024;
constexpr int kInterfacesMax = 16;  // The most interfaces that a worker names. It leaves out more.
constexpr int kLinksMax = 64;       // The most links in a MeasuredLinks.
constexpr int kBatchMax = 1024;     // The most messages in a WorkerMessages.
constexpr int kBegunSpansMax = 16;  // The most spans in a RankBegun.

// True for the name of a worker or a site: 1 to 63 characters of [A-Za-z0-9._-].
inline bool IsNodeName(absl::string_view name) {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace hooke

#endif  // HOOKE_WIRE_WORKER_LIMITS_H_
