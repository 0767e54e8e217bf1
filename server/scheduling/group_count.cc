#include "server/scheduling/group_count.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

void Note(std::optional<absl::Duration>& since, bool holds, absl::Duration now) {
  if (!holds) since.reset();
  if (holds && !since.has_value()) since = now;
}

bool HeldFor(const std::optional<absl::Duration>& since, absl::Duration long_enough, absl::Duration now) {
  return since.has_value() && now - *since >= long_enough;
}

std::string CountText(uint32_t count) { return absl::StrCat(count, count == 1 ? " group" : " groups"); }

std::string Place(const KindSeen& kind) { return kind.site.empty() ? "the cluster" : kind.site; }

std::string Grows(const KindSeen& kind, uint32_t count) {
  return absl::StrCat("grows from ", kind.count, " to ", CountText(count), ": ", Place(kind), " has room");
}

std::string Shrinks(const KindSeen& kind, uint32_t count, absl::Duration lacking) {
  return absl::StrCat("shrinks from ", kind.count, " to ", CountText(count), ": ", Place(kind), " has had no room for ",
                      kind.lacking, " of them for ", absl::FormatDuration(absl::Floor(lacking, absl::Seconds(1))));
}

std::string Begins(const KindSeen& kind) {
  return absl::StrCat("begins with ", CountText(kind.placed), " instead of ", kind.count, ": ", Place(kind),
                      " has room for no more");
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
    Note(seen.lack_since, kind.lacking > 0 && any_placed, now);
    Note(seen.room_since, kind.fits > 0 && job.is_steady && kind.lacking == 0, now);
    if (!job.has_started) {
      if (kind.lacking > 0 && kind.placed >= kind.min && kind.placed < kind.count) {
        changes.push_back({i, kind.placed, Begins(kind)});
      }
      continue;
    }
    if (!may_change || !job.is_steady) continue;
    const uint32_t fewer = std::max(kind.min, kind.count - std::min(kind.count, kind.lacking));
    const uint32_t more = std::min(kind.max, kind.count + kind.fits);
    if (HeldFor(seen.lack_since, options.after, now) && fewer < kind.count) {
      changes.push_back({i, fewer, Shrinks(kind, fewer, now - *seen.lack_since)});
      seen.chosen = false;
    } else if (HeldFor(seen.room_since, options.after, now) && more > kind.count && !seen.chosen && !soon_over) {
      changes.push_back({i, more, Grows(kind, more)});
    }
  }
  return changes;
}

}  // namespace hooke
