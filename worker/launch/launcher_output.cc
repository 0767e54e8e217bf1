#include "worker/launch/launcher_output.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

// Finds "<prefix>NUMBER<rest>" anywhere in `line` and returns NUMBER.
template <typename Number>
std::optional<Number> NumberAfter(absl::string_view line, absl::string_view prefix) {
  const size_t at = line.find(prefix);
  if (at == absl::string_view::npos) return std::nullopt;
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(at + prefix.size()));
  const size_t digits = rest.find_first_not_of("0123456789");
  Number number;
  if (!absl::SimpleAtoi(rest.substr(0, digits), &number)) return std::nullopt;
  return number;
}

template <typename Number>
void SetFirst(std::optional<Number> value, std::optional<Number>& field) {
  if (!field.has_value()) field = value;
}

void ReadOpenMpiLine(absl::string_view line, LauncherVerdict& verdict) {
  // The line is "mpirun noticed that process rank 1 with PID 0 on node n exited on signal 9 (Killed)." The PID is not
  // the rank's.
  if (absl::StrContains(line, "noticed that process rank")) {
    SetFirst(NumberAfter<uint32_t>(line, "process rank"), verdict.rank);
    SetFirst(NumberAfter<int>(line, "on signal"), verdict.signal);
  }
  // The lines are "  Process name: [[18662,1],0]" and "  Exit code:    3".
  if (absl::StrContains(line, "Process name: [[")) SetFirst(NumberAfter<uint32_t>(line, "],"), verdict.rank);
  if (absl::StrContains(line, "Exit code:")) SetFirst(NumberAfter<int>(line, "Exit code:"), verdict.exit_status);
}

void ReadMpichLine(absl::string_view line, LauncherVerdict& verdict) {
  // The lines are "=   PID 9223 RUNNING AT n", "=   EXIT CODE: 9" and "YOUR APPLICATION TERMINATED WITH THE EXIT
  // STRING: Killed (signal 9)".
  if (absl::StrContains(line, "RUNNING AT")) SetFirst(NumberAfter<int64_t>(line, "PID"), verdict.pid);
  if (absl::StrContains(line, "EXIT CODE:")) SetFirst(NumberAfter<int>(line, "EXIT CODE:"), verdict.exit_status);
  if (absl::StrContains(line, "EXIT STRING:") && absl::StrContains(line, "(signal")) {
    SetFirst(NumberAfter<int>(line, "(signal"), verdict.signal);
    verdict.exit_status.reset();  // The "exit code" line was the signal's number.
  }
}

}  // namespace

std::string MpiVersion(absl::string_view said) {
  // Open MPI: "mpirun (Open MPI) 4.1.4", or under another name "mpirun.openmpi (OpenRTE) 4.1.4". MPICH: a line
  // "    Version:           4.0.2" behind "HYDRA build details:". Intel MPI: "Intel(R) MPI Library for Linux* OS,
  // Version 2021.18.1 Build ...".
  for (const absl::string_view before : {"(Open MPI)", "(OpenRTE)", "Version:", "OS, Version"}) {
    const size_t at = said.find(before);
    if (at == absl::string_view::npos) continue;
    const absl::string_view version = absl::StripLeadingAsciiWhitespace(said.substr(at + before.size()));
    const std::vector<absl::string_view> numbers = absl::StrSplit(version.substr(0, 20), absl::ByAnyChar(". \n"));
    uint32_t major = 0;
    uint32_t minor = 0;
    if (numbers.size() > 1 && absl::SimpleAtoi(numbers[0], &major) && absl::SimpleAtoi(numbers[1], &minor)) {
      return absl::StrCat(major, ".", minor);
    }
  }
  return "";
}

std::optional<MpiFlavour> FlavourOf(absl::string_view said) {
  if (absl::StrContains(said, "(Open MPI)") || absl::StrContains(said, "(OpenRTE)")) return MpiFlavour::kOpenMpi;
  if (absl::StrContains(said, "Intel(R) MPI Library")) return MpiFlavour::kIntelMpi;
  if (absl::StrContains(said, "HYDRA build details")) return MpiFlavour::kMpich;
  return std::nullopt;
}

TaggedLine ParseTaggedLine(MpiFlavour flavour, absl::string_view line) {
  TaggedLine launcher{"mpirun", line};
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[")) return launcher;
  const size_t close = rest.find(']');
  if (close == absl::string_view::npos) return launcher;
  absl::string_view label = rest.substr(0, close);
  absl::string_view text = rest.substr(close + 1);
  if (flavour == MpiFlavour::kOpenMpi) {
    // Open MPI's lines are "[job,rank]<stdout>:text".
    const std::vector<absl::string_view> parts = absl::StrSplit(label, ',');
    uint32_t job;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &job)) return launcher;
    if (!absl::ConsumePrefix(&text, "<stdout>:") && !absl::ConsumePrefix(&text, "<stderr>:")) return launcher;
    label = parts[1];
  } else if (!absl::ConsumePrefix(&text, " ") && !text.empty()) {
    return launcher;  // MPICH's lines are "[rank] text".
  }
  uint32_t rank;
  if (!absl::SimpleAtoi(label, &rank)) return launcher;
  return {absl::StrCat("rank ", rank), text};
}

void ReadLauncherLine(MpiFlavour flavour, absl::string_view line, LauncherVerdict& verdict) {
  switch (flavour) {
    case MpiFlavour::kOpenMpi:
      return ReadOpenMpiLine(line, verdict);
    case MpiFlavour::kMpich:
      return ReadMpichLine(line, verdict);
    case MpiFlavour::kIntelMpi:
      // Intel MPI also names ranks that it has killed itself, and does not name a rank that has exited by itself. So
      // its lines do not tell which rank was the first.
      return;
  }
}

}  // namespace hooke
