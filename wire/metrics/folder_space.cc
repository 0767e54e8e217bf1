#include "wire/metrics/folder_space.h"

#include <sys/statvfs.h>

#include <utility>

#include "clocks/steady_time.h"

namespace hooke {

FolderSpace::FolderSpace(std::string folder, absl::Duration interval)
    : folder_(std::move(folder)), interval_(interval), thread_([this] { AskUntilStop(); }) {}

FolderSpace::~FolderSpace() {
  stop_.Notify();
  thread_.join();
}

std::optional<SpaceFigures> FolderSpace::last() const {
  absl::MutexLock lock(&mutex_);
  return last_;
}

void FolderSpace::AskUntilStop() {
  do {
    struct statvfs disk = {};
    if (statvfs(folder_.c_str(), &disk) != 0) continue;
    SpaceFigures figures;
    figures.free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
    figures.size_bytes = uint64_t{disk.f_blocks} * disk.f_frsize;
    figures.asked = SteadyTime();
    absl::MutexLock lock(&mutex_);
    last_ = figures;
  } while (!stop_.WaitFor(interval_));
}

void AddSpaceMetrics(const std::optional<SpaceFigures>& figures, absl::Time now, MetricFamilies& families) {
  if (!figures.has_value()) return;
  families.Gauge("hooke_state_folder_free_bytes", "Free space of the disk that holds --state-dir.",
                 static_cast<double>(figures->free_bytes));
  families.Gauge("hooke_state_folder_size_bytes", "Size of the disk that holds --state-dir.",
                 static_cast<double>(figures->size_bytes));
  families.Gauge("hooke_state_folder_answer_age_seconds", "Time since that disk answered last; it is asked every 5 s.",
                 absl::ToDoubleSeconds(now - figures->asked));
}

}  // namespace hooke
