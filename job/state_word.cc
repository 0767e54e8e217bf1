#include "job/state_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

std::string Word(absl::string_view name, absl::string_view prefix) {
  return absl::ConsumePrefix(&name, prefix) ? absl::AsciiStrToLower(name) : "unknown";
}

}  // namespace

std::string JobStateText(v1::JobState state) { return Word(v1::JobState_Name(state), "JOB_STATE_"); }

std::string GroupStateText(v1::GroupState state) { return Word(v1::GroupState_Name(state), "GROUP_STATE_"); }

}  // namespace hooke
