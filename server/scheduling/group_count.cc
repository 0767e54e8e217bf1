#include "server/scheduling/group_count.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Notes a number of groups. `least` becomes the least number since `since`, when it last rose above 0.
void Note(std::optional<absl::Duration>& since, uint32_t& least, uint32_t groups, absl::Duration now) {
  least = since.has_value() ? std::min(least, groups) : groups;
  if (groups == 0) since.reset();
  if (groups > 0 && !since.has_value()) since = now;
}

bool HeldFor(const std::optional<absl::Duration>& since, absl::Duration long_enough, absl::Duration now) {
  return since.has_value() && now - *since >= long_enough;
}

std::string CountText(uint32_t count) { return absl::StrCat(count, count == 1 ? " group" : " groups"); }

std::string Place(const KindSeen& kind) { return kind.site.empty() ? "the cluster" : kind.site; }

std::string Grows(const KindSeen& kind, uint32_t count) {
  return absl::StrCat("grows from ", kind.count, " to ", CountText(count), ": ", Place(kind), " has room");
}

std::string Shrinks(const KindSeen& kind, const KindWatch& seen, uint32_t count, absl::Duration now) {
  return absl::StrCat("shrinks from ", kind.count, " to ", CountText(count), ": ", Place(kind), " has had no room for ",
                      seen.least_lack, " of them for ",
                      absl::FormatDuration(absl::Floor(now - *seen.lack_since, absl::Seconds(1))));
}

std::string Begins(const KindSeen& kind) {
  return absl::StrCat("begins with ", CountText(kind.placed), " instead of ", kind.count, ": ", Place(kind),
                      " has room for no more");
}

bool CanBegin(const KindSeen& kind) {
  return kind.max > 0 && kind.lacking > 0 && kind.placed >= kind.min && kind.placed < kind.count;
}

bool MustBegin(const JobSeen& job, const KindWatch& seen, absl::Duration now, const ResizeOptions& options) {
  return HeldFor(seen.lack_since, options.begin_after, now) && !job.others_leave;
}

}  // namespace

std::vector<Resize> NextCounts(const JobSeen& job, absl::Span<KindWatch> watch, absl::Duration now,
                               const ResizeOptions& options) {
  std::vector<Resize> changes;
  bool any_placed = false;
  for (const KindSeen& kind : job.kinds) any_placed = any_placed || kind.placed > 0;
  const bool may_change = now - job.changed_at >= options.pause;
  const bool soon_over = job.ends_at.has_value() && *job.ends_at - now < options.pause;
  for (size_t i = 0; i < job.kinds.size(); ++i) {
    const KindSeen& kind = job.kinds[i];
    KindWatch& seen = watch[i];
    if (kind.max == 0) continue;
    Note(seen.lack_since, seen.least_lack, any_placed ? kind.lacking : 0, now);
    Note(seen.room_since, seen.least_room, job.is_steady && kind.lacking == 0 ? kind.fits : 0, now);
    if (!job.has_started) {
      if (!CanBegin(kind) || !MustBegin(job, seen, now, options)) continue;
      changes.push_back({i, kind.placed, Begins(kind)});
      seen.chosen = false;
      continue;
    }
    if (!may_change || !job.is_steady) continue;
    const uint32_t fewer = std::max(kind.min, kind.count - std::min(kind.count, seen.least_lack));
    const uint32_t more = std::min(kind.max, kind.count + seen.least_room);
    if (HeldFor(seen.lack_since, options.after, now) && fewer < kind.count) {
      changes.push_back({i, fewer, Shrinks(kind, seen, fewer, now)});
      seen.chosen = false;
    } else if (HeldFor(seen.room_since, options.after, now) && more > kind.count && !seen.chosen && !soon_over) {
      changes.push_back({i, more, Grows(kind, more)});
    }
  }
  return changes;
}

bool WaitsToBegin(const JobSeen& job, absl::Span<const KindWatch> watch, absl::Duration now,
                  const ResizeOptions& options) {
  if (job.has_started) return false;
  for (size_t i = 0; i < job.kinds.size(); ++i) {
    if (CanBegin(job.kinds[i]) && !MustBegin(job, watch[i], now, options)) return true;
  }
  return false;
}

bool AddFewer(const JobSeen& job, std::vector<Resize>& changes) {
  for (size_t i = changes.size(); i-- > 0;) {
    Resize& change = changes[i];
    const KindSeen& kind = job.kinds[change.kind];
    if (change.count <= kind.count) continue;
    if (--change.count > kind.count) {
      change.reason = Grows(kind, change.count);
    } else {
      changes.erase(changes.begin() + static_cast<ptrdiff_t>(i));
    }
    return true;
  }
  return false;
}

}  // namespace hooke
