#ifndef HOOKE_SERVER_PARAMETERS_ATTACH_H_
#define HOOKE_SERVER_PARAMETERS_ATTACH_H_

// Decides who may write the initial values of a center. Pure: it knows no threads, sockets or clocks.
//
// The first group that attaches gets the right to initialize, for the time of a lease. Each block that the group sends
// renews the lease. So a huge center may take long to send, but the group must not pause. The other groups wait. If the
// lease ends before the center has its values, the next group that asks gets the right.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hooke {

// The rank in a v1::Sender, after its job and key were checked. `incarnation` counts the group's starts.
struct Speaker {
  uint32_t group = 0;
  uint32_t rank = 0;
  uint32_t incarnation = 1;
};

// Returns the ABORTED status for an old incarnation of a group. `by` is the later incarnation that has attached.
absl::Status Replaced(uint32_t group, uint32_t incarnation, uint32_t by);

// A group's right to send the initial values.
struct InitializeRight {
  uint32_t group = 0;
  uint32_t incarnation = 1;
  absl::Time until;
  absl::Duration lease = absl::ZeroDuration();  // Each block that is sent renews the right for this long.
};

struct AttachState {
  bool initialized = false;              // The center has all its values; stays true.
  std::optional<InitializeRight> right;  // The right that was given last, even if its lease has ended.
};

enum class AttachAnswer { kReady, kInitialize, kWait };

struct AttachDecision {
  AttachAnswer answer = AttachAnswer::kWait;
  AttachState next;    // The state after this decision.
  std::string reason;  // Always set.
};

// Decides the answer to `speaker`, which asks at `now`. If the group with the right asks again, it keeps the right with
// a new lease. A later incarnation of that group takes over the right.
AttachDecision DecideAttach(absl::Time now, const AttachState& state, const Speaker& speaker, absl::Duration lease);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ATTACH_H_
