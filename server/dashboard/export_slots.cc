#include "server/dashboard/export_slots.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::Duration LongestDownload(uint64_t bytes) {
  constexpr double kSlowest = 1 << 20;  // The slowest rate, in bytes per second, at which a large download may go.
  return std::max(absl::Minutes(10), absl::Seconds(static_cast<double>(bytes) / kSlowest));
}

NextPiece WithinLongestDownload(uint64_t bytes, NextPiece next, std::function<absl::Time()> clock) {
  const absl::Time until = clock() + LongestDownload(bytes);
  return [until, next = std::move(next), clock = std::move(clock)]() -> absl::StatusOr<std::string> {
    if (clock() > until) return absl::DeadlineExceededError("the browser takes the model too slowly");
    return next();
  };
}

absl::Status ExportSlots::Reserve(const std::string& ticket, const std::string& job_id, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  DropExpired(now);
  if (slots_.size() >= options_.at_once) {
    return absl::ResourceExhaustedError(
        absl::StrCat(slots_.size(),
                     " models go through the coordinator already, and more would hold up its work: try again when one "
                     "of these downloads has ended, or use `hooke export`, which reads from the servers"));
  }
  slots_[ticket] = {job_id, now + options_.ticket_for};
  return absl::OkStatus();
}

absl::StatusOr<std::string> ExportSlots::Begin(const std::string& ticket, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  DropExpired(now);
  const auto slot = slots_.find(ticket);
  if (slot == slots_.end() || slot->second.expires == absl::InfiniteFuture()) {
    return absl::NotFoundError(absl::StrCat("this download was begun already, or not within ",
                                            absl::FormatDuration(options_.ticket_for),
                                            ": begin it on the job's page again"));
  }
  slot->second.expires = absl::InfiniteFuture();
  return slot->second.job_id;
}

void ExportSlots::End(const std::string& ticket) {
  absl::MutexLock lock(&mutex_);
  slots_.erase(ticket);
}

void ExportSlots::DropExpired(absl::Time now) {
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    slot = slot->second.expires <= now ? slots_.erase(slot) : std::next(slot);
  }
}

}  // namespace hooke
