#ifndef HOOKE_SERVER_SCHEDULING_FAIR_SHARE_H_
#define HOOKE_SERVER_SCHEDULING_FAIR_SHARE_H_

// Whose job comes next, and how many slots may an owner of jobs use at once? Pure: plain values in and out, no clock.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// Returns an owner's slot-seconds after it used `slots` for `time`. Slot-seconds count half after each `half_life`.
double SlotSecondsAfter(double slot_seconds, uint64_t slots, absl::Duration time, absl::Duration half_life);

// Returns the slots of which constant use would have led to these slot-seconds.
double MeanSlots(double slot_seconds, absl::Duration half_life);

// A job that has not ended.
struct QueuedJob {
  uint64_t number = 0;
  uint32_t priority = 0;
  std::string owner;
  uint64_t slots = 0;    // The slots that its waiting groups need together.
  bool started = false;  // Some of its groups run, or have finished.
};

// Returns the jobs' indexes in the order in which they get free slots: those of higher priority first, of one priority
// those that have started first, in order of number. Of the others, always the owner with the least use comes next,
// with the job of the lowest number. Use is `uses`, in slots, and the slots of the owner's jobs that are ahead in the
// order. Of owners with equal use, the one with the lowest number comes next.
std::vector<size_t> FairOrder(absl::Span<const QueuedJob> jobs, const std::map<std::string, double>& uses);

// The most slots that owners may use at once.
struct OwnerSlots {
  std::optional<uint32_t> each;             // The limit of each owner that `of` does not name; nullopt: no limit.
  std::map<std::string, uint32_t> of = {};  // Owners with a limit of their own.

  std::optional<uint32_t> LimitOf(const std::string& owner) const;
};

// Reads limits such as "8,anna=16,ben=0": 8 for each owner, but 16 for anna and none at all for ben. Empty: no limits.
// INVALID_ARGUMENT: the message says which part is wrong, and what is allowed.
absl::StatusOr<OwnerSlots> ParseOwnerSlots(absl::string_view text);

// "anna", or "jobs without an owner".
std::string OwnerText(const std::string& owner);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_FAIR_SHARE_H_
