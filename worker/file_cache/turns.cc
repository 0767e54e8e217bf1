#include "worker/file_cache/turns.h"

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"

namespace hooke {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(200);

}  // namespace

absl::Status Turns::Take(const std::function<absl::Status()>& stopped) {
  uint64_t mine;
  {
    absl::MutexLock lock(&mutex_);
    mine = ++last_ticket_;
    if (line_.empty()) moved_ = clock_();
    line_.insert(mine);
  }
  while (true) {
    absl::Status status = stopped();
    if (status.ok()) {
      const absl::StatusOr<bool> first = IsFirst(mine);
      if (first.ok() && *first) return absl::OkStatus();
      status = first.status();
    }
    if (status.ok()) continue;
    absl::MutexLock lock(&mutex_);
    Leave(mine);
    return status;
  }
}

absl::StatusOr<bool> Turns::IsFirst(uint64_t mine) {
  absl::MutexLock lock(&mutex_);
  // The pause is real time, also where a test's clock stands still.
  if (*line_.begin() != mine) ended_.WaitUntil(mutex_, SteadyTime() + kAskEvery);
  if (*line_.begin() == mine) return true;
  if (clock_() <= moved_ + still_max_) return false;
  return absl::UnavailableError(absl::StrCat("the files of groups that came before have stood still for ",
                                             absl::FormatDuration(still_max_), ": see to the disk of this node"));
}

void Turns::Move() {
  absl::MutexLock lock(&mutex_);
  moved_ = clock_();
}

void Turns::End() {
  absl::MutexLock lock(&mutex_);
  Leave(*line_.begin());
}

void Turns::Leave(uint64_t ticket) {
  if (*line_.begin() == ticket) moved_ = clock_();
  line_.erase(ticket);
  ended_.SignalAll();
}

}  // namespace hooke
