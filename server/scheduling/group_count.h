#ifndef HOOKE_SERVER_SCHEDULING_GROUP_COUNT_H_
#define HOOKE_SERVER_SCHEDULING_GROUP_COUNT_H_

// How many groups should a job have while room comes and goes? Pure. Times are steady.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// A change stops all groups of the job for some seconds, so it must be worth it.
struct ResizeOptions {
  // There must have been room for more groups for this long, or groups must have found none for this long.
  absl::Duration after = absl::Seconds(30);
  // After a change no other one begins within this time.
  absl::Duration pause = absl::Seconds(60);
};

// The groups of one kind of a job, as a placement left them.
struct KindSeen {
  std::string site;  // Empty: any.
  uint32_t count = 0;
  uint32_t min = 0;  // 0, as is `max`: the number stays.
  uint32_t max = 0;
  uint32_t placed = 0;  // Groups that run or start.
  uint32_t lacking =
      0;              // Groups for which there is no room. Those that wait for a next try, or are held, do not count.
  uint32_t fits = 0;  // Further groups for which there is room that nobody else waits for.
};

struct JobSeen {
  std::vector<KindSeen> kinds;
  bool has_started = false;                               // A group has started in this or an earlier generation.
  bool is_steady = false;                                 // All its groups run, but for those that lack room.
  absl::Duration changed_at = -absl::InfiniteDuration();  // When its number of groups changed last.
  std::optional<absl::Duration> ends_at = std::nullopt;   // An estimate.
};

// What is remembered of a kind from one placement to the next.
struct KindWatch {
  std::optional<absl::Duration> room_since;  // Unset: there is no room for more groups.
  std::optional<absl::Duration> lack_since;  // Unset: no group lacks room.
  bool chosen =
      false;  // A user chose the number. The coordinator adds no groups until room has forced it to take some.
};

// A change of the number of a kind's groups.
struct Resize {
  size_t kind = 0;
  uint32_t count = 0;
  std::string reason;  // "grows from 2 to 3 groups: cloud has room".
};

// Decides whether the numbers change now, and notes in `watch`, which has one entry for each kind, what this placement
// saw.
//
// A job that has not started yet loses nothing by a change. So it begins at once with as many groups as there is room
// for, if these are at least `min` and fewer than `count`. Later, a kind gets more groups if there has been room for
// more throughout `after`: as many as fit, up to `max`. It gets fewer if groups have lacked room throughout `after`
// while others run: those that lack it go, down to `min`. Two changes are at least `pause` apart. No group is added to
// a job that is likely to end before another change would be possible.
std::vector<Resize> NextCounts(const JobSeen& job, absl::Span<KindWatch> watch, absl::Duration now,
                               const ResizeOptions& options);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_GROUP_COUNT_H_
