#ifndef HOOKE_WORKER_LAUNCH_LAUNCHER_OUTPUT_H_
#define HOOKE_WORKER_LAUNCH_LAUNCHER_OUTPUT_H_

// Reads what the launcher (mpirun) prints. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/launch/launch_command.h"

namespace hooke {

// Returns the version of the MPI library, as "4.1", from what `mpirun --version` prints; "" if it is not in it.
// Versions that differ only in what follows these two numbers can start ranks together.
std::string MpiVersion(absl::string_view said);

// Returns the MPI library of mpirun, from what `mpirun --version` prints; nullopt if it does not say it.
std::optional<MpiFlavour> FlavourOf(absl::string_view said);

struct TaggedLine {
  std::string source;      // Who wrote the line: "rank 1", or "mpirun" for a line without a label.
  absl::string_view text;  // The line's text. It points into the line that was parsed.
};

// Splits a line of the launcher's output into its writer and its text.
TaggedLine ParseTaggedLine(MpiFlavour flavour, absl::string_view line);

// The launcher may say which process has ended the run, and how. A field is empty if the launcher has not said it.
struct LauncherVerdict {
  std::optional<uint32_t> rank;
  std::optional<int64_t> pid;
  std::optional<int> signal;
  std::optional<int> exit_status;
};

// Reads one more line of the launcher's own output (source "mpirun") into `verdict`. Later lines do not change a field
// that has a value.
void ReadLauncherLine(MpiFlavour flavour, absl::string_view line, LauncherVerdict& verdict);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_LAUNCHER_OUTPUT_H_
