#include "job/state_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hooke {

std::string JobStateText(v1::JobState state) {
  const std::string& name = v1::JobState_Name(state);
  absl::string_view word = name;
  return absl::ConsumePrefix(&word, "JOB_STATE_") ? absl::AsciiStrToLower(word) : "unknown";
}

}  // namespace hooke
