#ifndef HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
#define HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_

// Makes the command that starts a group's processes on one node, and parses the output of the launcher (mpirun). Pure:
// nothing is started here; process.h does that.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

enum class MpiFlavour { kOpenMpi, kMpich };

// The MPI library that this build's ranks are linked with.
MpiFlavour BuiltFlavour();

// File names of that library's mpirun. The most specific name comes first, because both libraries may be installed.
std::vector<std::string> MpirunNames(MpiFlavour flavour);

struct LaunchOptions {
  MpiFlavour flavour = MpiFlavour::kOpenMpi;
  std::string mpirun;       // Absolute path, or a name on the PATH.
  uint32_t ranks = 1;       // >= 1.
  std::string rank_binary;  // Absolute path of hooke-rank, or of another program.
  std::vector<std::string> rank_arguments;
  bool tells_threads = true;  // Whether each rank gets the argument --threads=N, too.
  // Two folders of this group alone: one for the launcher's session files, one (on a tmpfs) for the shared memory of
  // the ranks. The caller removes them after the group's end.
  std::string session_folder;
  std::string memory_folder;
  uint32_t threads_per_rank = 1;         // Cores for each rank; >= 1.
  bool as_root = false;                  // Whether the caller runs as root, which Open MPI must be told.
  std::vector<std::string> environment;  // The environment of the calling process, as "NAME=value".
  // Variables for the launcher and the ranks, as "NAME=value". They come before all others of these names.
  std::vector<std::string> added_environment;
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // The whole environment, as "NAME=value".
};

// Returns the command that starts the group on this node. Every rank runs `rank_binary rank_arguments`, is killed by
// the kernel when its parent dies, and has its output labelled.
//
// Variables of another launcher or scheduler are not passed on: they would make this mpirun believe that it is part of
// another start.
LaunchCommand MakeLaunchCommand(const LaunchOptions& options);

struct TaggedLine {
  std::string source;      // Who wrote the line: "rank 1", or "mpirun" for a line without a label.
  absl::string_view text;  // The line's text. It points into the line that was parsed.
};

// Splits a line of the launcher's output into its writer and its text.
TaggedLine ParseTaggedLine(MpiFlavour flavour, absl::string_view line);

// What the launcher reports about the process that ended the run. A field is empty if the launcher did not report it.
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

#endif  // HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
