#ifndef HOOKE_SERVER_COORDINATOR_PLACEMENT_H_
#define HOOKE_SERVER_COORDINATOR_PLACEMENT_H_

// Which waiting group starts on which worker? A pure function of plain values: knows no clock, threads or messages.
// Used by ClusterState at every change; its tests call it with tables.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hooke {

struct FreeWorker {
  std::string name;
  std::string site;
  uint32_t slots = 0;
  uint32_t free = 0;  // <= slots.
};

struct WaitingGroup {
  std::string job_id;
  uint32_t group = 0;
  uint32_t ranks = 1;
  std::string site;      // Only there; empty: anywhere.
  bool due = true;       // False: it waits for its next try, and its slots are kept for it.
  std::string wait_why;  // Where not due.
};

struct Placement {
  std::string worker;  // Empty: waits.
  std::string site;
  std::string reason;  // Always set.
};

// One answer for each group of `queue`, in its order, which is that of submission. All ranks of a group go to one
// worker, the one whose free slots are fewest but enough (ties: by name). A group that must wait keeps later ones off
// every worker that is large enough for it, so that it cannot be overtaken forever.
std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, absl::Span<const FreeWorker> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_PLACEMENT_H_
