#include "worker/bench/run_ranks.h"

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "worker/launch/find_program.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/launcher_output.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStopGrace = absl::Seconds(2);

// A temporary folder that the destructor removes.
class Folder {
 public:
  explicit Folder(const fs::path& parent) : path_((parent / "hooke-bench-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }  // Empty if the folder could not be made.

 private:
  std::string path_;
};

// Returns the path of mpirun, or "" if there is none.
std::string FindMpirun(const RanksOptions& options) {
  const std::vector<std::string> names =
      options.mpirun.empty() ? MpirunNames(BuiltFlavour()) : std::vector<std::string>{options.mpirun};
  const bool is_path = options.mpirun.find('/') != std::string::npos;
  const std::string found = !is_path                    ? FindProgram(names, options.path)
                            : IsProgram(options.mpirun) ? options.mpirun
                                                        : "";
  return found.empty() ? "" : InRealFolder(found);
}

absl::Status NoMpirun(const RanksOptions& options) {
  if (!options.mpirun.empty()) {
    return absl::NotFoundError(absl::StrCat(options.mpirun, ": no such program; name the mpirun of ",
                                            BuiltFlavour() == MpiFlavour::kMpich ? "MPICH" : "Open MPI"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no ", absl::StrJoin(MpirunNames(BuiltFlavour()), " or "), " on the PATH; install ",
      BuiltFlavour() == MpiFlavour::kMpich ? "mpich" : "openmpi-bin", ", or say with --mpirun where it is"));
}

// Waits for the end of mpirun. After a signal it ends the ranks and returns nullopt.
std::optional<ProcessEnd> WaitForEnd(Process& process, const sigset_t& stop_signals) {
  while (true) {
    std::optional<ProcessEnd> end = process.Wait(SteadyTime() + absl::Milliseconds(100));
    if (end.has_value()) return end;
    const timespec at_once = {};
    if (sigtimedwait(&stop_signals, nullptr, &at_once) < 0) continue;
    process.Stop(kStopGrace);
    process.Wait(SteadyTime() + kStopGrace + absl::Seconds(5));
    return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::string> RunRanks(const RanksOptions& options) {
  const std::string mpirun = FindMpirun(options);
  if (mpirun.empty()) return NoMpirun(options);
  std::error_code error;
  const Folder folder(fs::temp_directory_path(error));
  if (folder.path().empty()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot make a folder in ",
                                                      fs::temp_directory_path(error).string(), ": ",
                                                      std::strerror(errno), "; set TMPDIR to one"));
  }
  const Folder memory("/dev/shm");
  LaunchOptions launch;
  launch.flavour = BuiltFlavour();
  launch.mpirun = mpirun;
  launch.ranks = static_cast<uint32_t>(options.ranks);
  launch.rank_binary = options.program;
  launch.rank_arguments = options.arguments;
  const std::string document = folder.path() + "/document";
  launch.rank_arguments.insert(launch.rank_arguments.end(), {"--document", document});
  launch.session_folder = folder.path();
  launch.memory_folder = memory.path().empty() ? folder.path() : memory.path();
  launch.as_root = geteuid() == 0;
  launch.environment = options.environment;
  LaunchCommand command = MakeLaunchCommand(launch);
  ProcessOptions process_options;
  process_options.argv = std::move(command.argv);
  process_options.environment = std::move(command.environment);
  process_options.folder = folder.path();
  process_options.on_line = [&options](absl::string_view line) {
    options.on_line(ParseTaggedLine(BuiltFlavour(), line).text);
  };
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(process_options));
  if (!process.ok()) return process.status();
  const std::optional<ProcessEnd> end = WaitForEnd(**process, options.stop_signals);
  if (!end.has_value()) return absl::CancelledError("interrupted; nothing was written");
  if (!end->ok()) return absl::UnavailableError(absl::StrCat("the ranks failed: mpirun ", ToString(*end)));
  std::ifstream in(document);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (text.empty()) return absl::UnavailableError("the ranks ended without a result");
  return text;
}

}  // namespace hooke
