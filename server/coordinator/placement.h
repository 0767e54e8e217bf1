#ifndef HOOKE_SERVER_COORDINATOR_PLACEMENT_H_
#define HOOKE_SERVER_COORDINATOR_PLACEMENT_H_

// Which waiting group starts on which worker? A pure function of plain values: it knows no clock, threads or messages.

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
  bool allows_commands = false;
};

struct WaitingGroup {
  std::string job_id;
  uint32_t group = 0;
  uint32_t ranks = 1;
  std::string site;      // The only site where it may run; empty: any site.
  bool due = true;       // False: it waits for its next try, and slots are kept for it.
  std::string wait_why;  // The reason to show if it is not due.
  bool command = false;  // True: only a worker that allows commands may run it.
};

struct Placement {
  std::string worker;  // Empty: the group waits.
  std::string site;
  std::string reason;  // Always set.
};

// `queue` is in order of submission; the result has one entry for each of its groups. All ranks of a group go to one
// worker: the one with the fewest free slots that are enough (best fit; ties by name). A group that must wait keeps
// later groups off every worker that is large enough for it. Otherwise small groups could overtake it forever.
std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, absl::Span<const FreeWorker> workers);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_PLACEMENT_H_
