#ifndef HOOKE_CLIENT_PROFILE_COMMON_CLOCK_H_
#define HOOKE_CLIENT_PROFILE_COMMON_CLOCK_H_

// Puts the trace events of a job's ranks on one clock. Ranks of one machine share its clock. Machines are put on the
// coordinator's clock by the offsets that their workers measured. Pure. Values from ranks are not trusted.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct PlacedEvent {
  uint32_t group = 0;
  uint32_t rank = 0;
  uint32_t track = 0;
  int64_t begin_ns = 0;                   // On the common clock.
  const v1::TraceEvent* event = nullptr;  // Points into the profiles.
};

struct CommonClock {
  bool is_unix =
      true;  // The clock is the coordinator's. False: it is that of a single machine, whose offset is unknown.
  std::vector<PlacedEvent> events;  // Sorted by group, rank, track and begin.
  uint32_t machines = 0;
  uint32_t ranks = 0;           // Ranks whose events are placed.
  uint32_t ranks_left_out = 0;  // Ranks on machines whose clock offset is unknown.
  int64_t error_ns = 0;         // Events of two machines may be off by this much at most; 0 with one machine.
};

// The events point into `ranks`.
CommonClock PlaceEvents(absl::Span<const v1::ReadProfileResponse> ranks);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROFILE_COMMON_CLOCK_H_
