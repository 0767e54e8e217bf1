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
  // A job whose groups have min and max begins with fewer groups once some have lacked room for this long.
  absl::Duration begin_after = absl::Seconds(5);
};

// The groups of one kind of a job, as a placement left them.
struct KindSeen {
  std::string site;  // Empty: any.
  uint32_t count = 0;
  uint32_t min = 0;  // If `min` and `max` are 0, the number of groups never follows the room.
  uint32_t max = 0;
  uint32_t placed = 0;  // Groups that run or start.
  // Groups for which there is no room. Those that wait for a next try, or are held, do not count.
  uint32_t lacking = 0;
  // Further groups for which there is room that nobody else waits for.
  uint32_t fits = 0;
};

struct JobSeen {
  std::vector<KindSeen> kinds;
  // A group has started in this or an earlier generation.
  bool has_started = false;
  // All its groups run, but for those that lack room. Nothing of the job is silent, and no group will have to move
  // soon.
  bool is_steady = false;
  // When its number of groups changed last.
  absl::Duration changed_at = -absl::InfiniteDuration();
  // When the job is likely to end; nullopt: there is no estimate.
  std::optional<absl::Duration> ends_at = std::nullopt;
  // Groups of other jobs were told to leave for this job and have not left yet.
  bool others_leave = false;
};

// The coordinator keeps this of each kind from one placement to the next.
struct KindWatch {
  // Unset: there is no room for more groups, some lack room, or the job is not steady.
  std::optional<absl::Duration> room_since;
  // Unset: no group lacks room, or no group of the job runs or starts.
  std::optional<absl::Duration> lack_since;
  // The fewest further groups for which there was room since `room_since`.
  uint32_t least_room = 0;
  // The fewest groups that lacked room since `lack_since`.
  uint32_t least_lack = 0;
  // A user chose the number. The coordinator adds no groups until room has forced it to take some.
  bool chosen = false;

  // Forgets what was seen of the room.
  void ForgetRoom() { *this = {std::nullopt, std::nullopt, 0, 0, chosen}; }
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
// A job that has not started yet loses nothing by a change. So it soon begins with as many groups as there is room for,
// if these are at least `min` and fewer than `count`. It first waits (WaitsToBegin), because more workers may connect
// or become free. Later, a kind gets more groups if there has been room for more throughout `after`: as many as fitted
// all the time, up to `max`. It gets fewer if groups have lacked room throughout `after` while others run: as many go
// as lacked it all the time, down to `min`. Two changes are at least `pause` apart. No group is added to a job that is
// likely to end before another change would be possible.
std::vector<Resize> NextCounts(const JobSeen& job, absl::Span<KindWatch> watch, absl::Duration now,
                               const ResizeOptions& options);

// Returns whether a job that has not started yet waits for more room although some of its groups could start. It waits
// until groups have lacked room for `begin_after` and nobody leaves for the job any more. Then it begins with fewer.
// Call it after NextCounts, which notes how long that is.
bool WaitsToBegin(const JobSeen& job, absl::Span<const KindWatch> watch, absl::Duration now,
                  const ResizeOptions& options);

// Makes the last change that adds groups add one less. A change that would add none is removed. Returns false if no
// change adds groups.
bool AddFewer(const JobSeen& job, std::vector<Resize>& changes);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_GROUP_COUNT_H_
