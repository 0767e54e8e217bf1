#ifndef HOOKE_SERVER_PARAMETERS_ATTACH_H_
#define HOOKE_SERVER_PARAMETERS_ATTACH_H_

// Who may write the initial values of a center? Pure: knows no threads, sockets or clocks.
//
// The first group that attaches gets the right to initialize, for a lease that starts anew with each block it sends: a
// huge center may take long, but must not stall. The others wait. When the lease ends without values, the next one that
// asks gets the right.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hooke {

// Who speaks: a rank of a group, as it was started.
struct Speaker {
  uint32_t group = 0;
  uint32_t rank = 0;
  uint32_t incarnation = 1;
};

// ABORTED: what an incarnation of a group is told once a later one, `by`, has attached.
absl::Status Replaced(uint32_t group, uint32_t incarnation, uint32_t by);

// The right to initialize.
struct InitializeRight {
  uint32_t group = 0;
  uint32_t incarnation = 1;
  absl::Time until;
  absl::Duration lease = absl::ZeroDuration();  // For which it was given.
};

struct AttachState {
  bool initialized = false;              // The center has all its values; stays true.
  std::optional<InitializeRight> right;  // The last one given.
};

enum class AttachAnswer { kReady, kInitialize, kWait };

struct AttachDecision {
  AttachAnswer answer = AttachAnswer::kWait;
  AttachState next;    // The state from now on.
  std::string reason;  // Always set.
};

// What to tell `speaker`, who asks at `now`. The same group asking again keeps the right, and its lease starts anew; a
// later incarnation of it takes the right over.
AttachDecision DecideAttach(absl::Time now, const AttachState& state, const Speaker& speaker, absl::Duration lease);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ATTACH_H_
