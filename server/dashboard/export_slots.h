#ifndef HOOKE_SERVER_DASHBOARD_EXPORT_SLOTS_H_
#define HOOKE_SERVER_DASHBOARD_EXPORT_SLOTS_H_

// Bounds the models that go through the coordinator at once. A page gets a ticket, which is good for one download. So
// the browser itself can download, though it cannot send the cluster's token. ExportSlots knows no clock and no
// randomness.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"

namespace hooke {

// Returns how long a download of so many bytes may take: ten minutes, or one second for each MiB if that is longer.
// Without this limit a slow browser could hold a slot for days.
absl::Duration LongestDownload(uint64_t bytes);

// Makes the next piece of a download, as HttpAnswer::next does.
using NextPiece = std::function<absl::StatusOr<std::string>()>;
// Returns `next` of a download of so many bytes, which begins now by the steady clock. Once the download has taken
// longer than LongestDownload, it returns DEADLINE_EXCEEDED instead, and does not call `next`.
NextPiece WithinLongestDownload(uint64_t bytes, NextPiece next, std::function<absl::Time()> clock = SteadyTime);

struct ExportSlotsOptions {
  size_t at_once = 2;
  absl::Duration ticket_for = absl::Seconds(30);  // A download must begin within this time.
};

// Thread-safe.
class ExportSlots {
 public:
  explicit ExportSlots(ExportSlotsOptions options = {}) : options_(options) {}

  // Takes a slot for a download of the job, under the name `ticket`, which nobody can guess. RESOURCE_EXHAUSTED: all
  // slots are taken.
  absl::Status Reserve(const std::string& ticket, const std::string& job_id, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins the download, and returns its job. NOT_FOUND: the ticket is unknown, used or too old.
  absl::StatusOr<std::string> Begin(const std::string& ticket, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the slot back. Does nothing if it was given back already.
  void End(const std::string& ticket) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Slot {
    std::string job_id;
    absl::Time expires = absl::InfiniteFuture();  // Infinite once the download has begun.
  };

  void DropExpired(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ExportSlotsOptions options_;
  absl::Mutex mutex_;
  std::map<std::string, Slot> slots_ ABSL_GUARDED_BY(mutex_);  // By ticket.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_EXPORT_SLOTS_H_
