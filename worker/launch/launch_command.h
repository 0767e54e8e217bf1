#ifndef HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
#define HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_

// How a group's processes are started on one node, and how to read what the launcher prints. Pure: plain values in and
// out; nothing is started here (process.h does that). Called by worker/daemon
// and worker/bench.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

enum class MpiFlavour { kOpenMpi, kMpich };

// The MPI library that this build's ranks are linked with.
MpiFlavour BuiltFlavour();

// Names of that library's mpirun, the most specific first: both libraries may be installed.
std::vector<std::string> MpirunNames(MpiFlavour flavour);

struct LaunchOptions {
  MpiFlavour flavour = MpiFlavour::kOpenMpi;
  std::string mpirun;       // Absolute path, or a name on the PATH.
  uint32_t ranks = 1;       // >= 1.
  std::string rank_binary;  // Absolute path of hooke-rank, or of another program.
  std::vector<std::string> rank_arguments;
  // Folders of this group alone, removed after its end: the launcher's session files, and the shared memory of the
  // ranks (on a tmpfs).
  std::string session_folder;
  std::string memory_folder;
  uint32_t threads_per_rank = 1;         // Cores for each slot; >= 1.
  bool as_root = false;                  // The daemon runs as root: Open MPI wants to be told.
  std::vector<std::string> environment;  // "NAME=value": the daemon's own.
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", complete.
};

// The command that starts the group on this node: every rank runs `rank_binary rank_arguments --threads=N`, is
// killed by the kernel when its parent dies, and has its output labelled. Variables that another launcher or scheduler
// left in the environment are not passed on: they would make this mpirun believe that it is part of another start.
LaunchCommand MakeLaunchCommand(const LaunchOptions& options);

struct TaggedLine {
  std::string source;      // "rank 1", or "mpirun" for a line without a label.
  absl::string_view text;  // Part of the line that was parsed.
};

// Splits a line of the launcher's output into who wrote it and what.
TaggedLine ParseTaggedLine(MpiFlavour flavour, absl::string_view line);

// What the launcher says about the process that ended its run. All fields are as far as it said.
struct LauncherVerdict {
  std::optional<uint32_t> rank;
  std::optional<int64_t> pid;
  std::optional<int> signal;
  std::optional<int> exit_status;
};

// Reads one more line of the launcher's own output (source "mpirun") into `verdict`. The first word on each field
// stays.
void ReadLauncherLine(MpiFlavour flavour, absl::string_view line, LauncherVerdict& verdict);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
