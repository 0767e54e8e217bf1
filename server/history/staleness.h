#ifndef HOOKE_SERVER_HISTORY_STALENESS_H_
#define HOOKE_SERVER_HISTORY_STALENESS_H_

// Measures how stale the groups of a job are: how often others change the center between two exchanges of a group. It
// follows from the numbers of exchanges that groups report anyway, so it costs no training step anything. It holds for
// rules under which each exchange changes the center at once. Pure; the caller passes the time. Not thread-safe.

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// A group's report.
struct ReportedExchanges {
  uint32_t group = 0;
  uint32_t incarnation = 0;
  uint64_t exchanges = 0;  // Exchanges of this start of the group that succeeded.
};

class Staleness {
 public:
  // Takes a report at this steady time. Returns the mean number of exchanges that other groups have made for each
  // exchange of this group. The mean is over the last 5 to 10 s: over less soon after a start, and over more if the
  // group exchanges less often. nullopt: it is not known yet.
  std::optional<double> Report(const ReportedExchanges& report, absl::Duration steady);

 private:
  // The exchanges until some time, of the group and of all groups.
  struct Mark {
    absl::Duration steady;
    uint64_t own = 0;
    uint64_t all = 0;
  };
  struct Group {
    uint32_t incarnation = 0;
    uint64_t reported = 0;
    uint64_t own = 0;  // Exchanges over all starts of the group.
    Mark older;
    Mark newer;
  };

  uint64_t all_ = 0;
  std::map<uint32_t, Group> groups_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_HISTORY_STALENESS_H_
