#include "server/parameters/look_schedule.h"

#include <algorithm>

namespace hooke {

absl::Time LookSchedule::next() const {
  absl::MutexLock lock(&mutex_);
  return next_;
}

void LookSchedule::LookBy(absl::Time when) {
  absl::MutexLock lock(&mutex_);
  next_ = std::min(next_, when);
  asked_ = std::min(asked_, when);
}

uint64_t LookSchedule::Begin() {
  absl::MutexLock lock(&mutex_);
  asked_ = absl::InfiniteFuture();
  return ++looks_;
}

void LookSchedule::End(uint64_t look) {
  absl::MutexLock lock(&mutex_);
  if (look == looks_) next_ = asked_;
}

}  // namespace hooke
