#include "server/parameters/attach.h"

#include "absl/strings/str_cat.h"

namespace hooke {

absl::Status Replaced(uint32_t group, uint32_t incarnation, uint32_t by) {
  return absl::AbortedError(
      absl::StrCat("start ", incarnation, " of group ", group, " has been replaced by start ", by, "; stop"));
}

AttachDecision DecideAttach(absl::Time now, const AttachState& state, const Speaker& speaker, absl::Duration lease) {
  if (state.initialized) return {AttachAnswer::kReady, state, "the center has values"};
  const AttachState granted = {false, InitializeRight{speaker.group, speaker.incarnation, now + lease, lease}};
  if (!state.right.has_value()) {
    return {AttachAnswer::kInitialize, granted, absl::StrCat("group ", speaker.group, " is the first to attach")};
  }
  const InitializeRight& right = *state.right;
  if (right.group == speaker.group && right.incarnation <= speaker.incarnation) {
    return {AttachAnswer::kInitialize, granted,
            absl::StrCat("group ", speaker.group, " has the right to initialize already")};
  }
  if (now >= right.until) {
    return {
        AttachAnswer::kInitialize, granted,
        absl::StrCat("group ", right.group, " did not initialize the center in time; group ", speaker.group, " does")};
  }
  return {AttachAnswer::kWait, state,
          absl::StrCat("group ", right.group, " is initializing the center; its right ends in ",
                       absl::FormatDuration(right.until - now))};
}

}  // namespace hooke
