#ifndef HOOKE_CLOCKS_CORES_USED_H_
#define HOOKE_CLOCKS_CORES_USED_H_

// How many cores a process keeps busy: its CPU time over a window of the last seconds, divided by the window's length.

#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace hooke {

// CPU time of all threads of this process since it started.
absl::Duration ProcessCpuTime();

// Pure: the caller passes the clocks. Belongs to one thread.
class CoresUsed {
 public:
  explicit CoresUsed(absl::Duration window) : window_(window) {}

  // Takes the process's CPU time at `now` on a steady clock. Neither decreases. Returns the cores that were busy on
  // average since the call that came last before `now - window`. If there is none, since the first call. The first call
  // returns 0.
  double Add(absl::Time now, absl::Duration cpu_time);

 private:
  const absl::Duration window_;
  std::deque<std::pair<absl::Time, absl::Duration>> seen_;
};

}  // namespace hooke

#endif  // HOOKE_CLOCKS_CORES_USED_H_
