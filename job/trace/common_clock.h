#ifndef HOOKE_JOB_TRACE_COMMON_CLOCK_H_
#define HOOKE_JOB_TRACE_COMMON_CLOCK_H_

// Puts the trace events of a job's ranks, and the exchanges that servers have served, on one clock. Processes of one
// machine share its clock. Machines are put on the coordinator's clock by the offsets that their daemons measured.
// Pure. Values from ranks and servers are not trusted.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "wire/calls/exchanges_of_server.h"

namespace hooke {

struct PlacedEvent {
  uint32_t group = 0;
  uint32_t rank = 0;
  uint32_t track = 0;
  int64_t begin_ns = 0;                   // On the common clock.
  const v1::TraceEvent* event = nullptr;  // Points into the profiles.
};

struct PlacedExchange {
  size_t server = 0;                             // Index of the server.
  int64_t begin_ns = 0;                          // On the common clock.
  const v1::ServedExchange* exchange = nullptr;  // Points into the servers' answers.
};

struct CommonClock {
  bool is_unix =
      true;  // The clock is the coordinator's. False: it is that of a single machine, whose offset is unknown.
  std::vector<PlacedEvent> events;  // Sorted by group, rank, track and begin.
  // The exchanges at some time between the first and the last of `events`, sorted by server, group, rank and begin.
  std::vector<PlacedExchange> exchanges;
  uint32_t machines = 0;
  uint32_t ranks = 0;                    // Ranks whose events are placed.
  uint32_t ranks_left_out = 0;           // Ranks on machines whose clock offset is unknown.
  std::vector<size_t> servers_left_out;  // Indices of servers whose exchanges cannot be put on this clock.
  // Indices of servers that have exchanges, but none at the time of the ranks' events.
  std::vector<size_t> servers_apart;
  int64_t error_ns = 0;  // Events of two machines may be off by this much at most; 0 with one machine.
};

// The events and exchanges of the result point into `ranks` and `servers`.
CommonClock PlaceEvents(absl::Span<const v1::ReadProfileResponse> ranks,
                        absl::Span<const ExchangesOfServer> servers = {});

// Returns when something ends that begins at `begin_ns`: the largest time if it is out of range.
int64_t EndOf(int64_t begin_ns, uint64_t duration_ns);

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_COMMON_CLOCK_H_
