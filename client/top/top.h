#ifndef HOOKE_CLIENT_TOP_TOP_H_
#define HOOKE_CLIENT_TOP_TOP_H_

// Looks at a cluster again and again, through restarts of the coordinator, for `hooke top`.

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/coordinator_client.h"
#include "client/process/interrupts.h"
#include "client/top/top_view.h"

namespace hooke {

struct TopOptions {
  absl::Duration interval = absl::Seconds(1);  // From one picture to the next.
  uint64_t count = 0;                          // Pictures to show; 0: until an interrupt.
  // Whether the first picture waits for a second look, so that it has rates.
  bool rates_first = false;
  absl::Duration window = absl::Seconds(5);  // Rates are means over this time, because ranks report once a second.
  std::function<absl::Time()> clock = absl::Now;
};

// Shows the cluster `count` times, or until an interrupt. While the coordinator does not answer, it shows the last
// state with the trouble. All arguments must outlive the call. `coordinator` should have limits for its calls, which an
// interrupt does not end.
//
// Returns OK if the last of `count` looks succeeded, and CANCELLED after an interrupt. Any error of the first look ends
// it at once. So does a later error that is the coordinator's answer. An error of a coordinator that is busy, stops or
// starts, such as UNAVAILABLE, is returned only if the last of `count` looks has it.
absl::Status RunTop(CoordinatorClient& coordinator, Interrupts& interrupts, const TopOptions& options,
                    const std::function<void(const TopState& state, absl::Time now)>& show);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TOP_TOP_H_
