#ifndef HOOKE_WIRE_METRICS_FOLDER_SPACE_H_
#define HOOKE_WIRE_METRICS_FOLDER_SPACE_H_

// How much space the disk of a daemon's folder has. A thread of its own asks the disk, so that a disk that does not
// answer holds up nobody else.

#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/stop_signal.h"
#include "wire/metrics/families.h"

namespace hooke {

struct SpaceFigures {
  uint64_t free_bytes = 0;  // For users other than root.
  uint64_t size_bytes = 0;
  absl::Time asked;  // When the disk answered, on SteadyTime's clock.
};

// Thread-safe.
class FolderSpace {
 public:
  // Asks every `interval` until the destructor, at once for the first time.
  FolderSpace(std::string folder, absl::Duration interval);
  ~FolderSpace();
  FolderSpace(const FolderSpace&) = delete;
  FolderSpace& operator=(const FolderSpace&) = delete;

  // Returns the disk's last answer; nullopt if it has not answered yet.
  std::optional<SpaceFigures> last() const;

 private:
  void AskUntilStop();

  const std::string folder_;
  const absl::Duration interval_;
  StopSignal stop_;
  mutable absl::Mutex mutex_;
  std::optional<SpaceFigures> last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Adds hooke_state_folder_... `now` is on SteadyTime's clock. Without figures it adds nothing.
void AddSpaceMetrics(const std::optional<SpaceFigures>& figures, absl::Time now, MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_WIRE_METRICS_FOLDER_SPACE_H_
