#include "server/dashboard/job_events.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

// Takes "group 3" from the start of `text`.
std::optional<uint32_t> TakeGroup(absl::string_view& text) {
  absl::string_view rest = text;
  uint32_t group = 0;
  if (!absl::ConsumePrefix(&rest, "group ")) return std::nullopt;
  const absl::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  if (!absl::SimpleAtoi(digits, &group)) return std::nullopt;
  text = rest.substr(digits.size());
  return group;
}

// Returns the kind of a line of ClusterState about a group; null: it is no event. `rest` follows "group N".
const char* GroupKind(absl::string_view rest) {
  absl::ConsumePrefix(&rest, " (evaluation)");
  if (absl::StartsWith(rest, " starts on ")) return "start";
  if (absl::StartsWith(rest, " started") || absl::StartsWith(rest, " is ready on ")) return nullptr;
  if (absl::StartsWith(rest, " rank ")) {
    const absl::string_view said = rest.substr(6);
    const bool goes_well = absl::StrContains(said, " is there (pid ") || absl::StrContains(said, " is done at step ");
    return goes_well ? nullptr : absl::StrContains(said, " failed: ") ? "death" : "notice";
  }
  // "group 0 at step 5: failed (...)": the group's end.
  if (absl::ConsumePrefix(&rest, " at step ")) {
    const absl::string_view reason = rest.substr(std::min(rest.find(": "), rest.size()));
    const bool dies = absl::StartsWith(reason, ": failed (") || absl::StartsWith(reason, ": lost (");
    return dies ? "death" : "end";
  }
  return "notice";
}

}  // namespace

std::vector<JobEvent> EventsIn(absl::string_view log) {
  std::vector<JobEvent> events;
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    const size_t space = line.find(' ');
    absl::string_view text = line.substr(std::min(space, line.size() - 1) + 1);
    if (!absl::ConsumePrefix(&text, "coordinator ")) continue;
    absl::Time time;
    if (!absl::ParseTime(absl::RFC3339_full, line.substr(0, space), &time, nullptr)) continue;
    JobEvent event;
    event.unix_ms = absl::ToUnixMillis(time);
    event.text = std::string(text);
    event.group = TakeGroup(text);
    if (event.group.has_value()) {
      event.kind = GroupKind(text);
      if (event.kind == nullptr) continue;
    } else {
      const bool fails = absl::StartsWith(text, "job failed: ");
      const bool ends = absl::StartsWith(text, "job succeeded: ") || absl::StartsWith(text, "job was cancelled") ||
                        absl::StartsWith(text, "job cancelled");
      event.kind = fails ? "death" : ends ? "end" : "notice";
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace hooke
