#include "worker/api/launcher.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// A launcher sets both variables for each process that it starts.
struct Launcher {
  // A variable that only started processes have. srun's number of tasks is also set in batch scripts.
  const char* mark;
  const char* processes;
  const char* name;
};
constexpr Launcher kMpiLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
    {"PMI_RANK", "PMI_SIZE", "an MPI launcher"},
};
constexpr Launcher kOtherLaunchers[] = {
    {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "srun"},
    {"RANK", "WORLD_SIZE", "torchrun"},
    {"HOROVOD_RANK", "HOROVOD_SIZE", "horovodrun"},
};
// srun with PMIx sets this one, and nothing that tells the number of processes.
constexpr char kPmixRank[] = "PMIX_RANK";

// Returns 0 if the launcher did not start this process.
uint32_t ProcessesOf(const Launcher& launcher, const Environment& environment) {
  const char* const processes = environment(launcher.processes);
  uint32_t number = 0;
  if (environment(launcher.mark) == nullptr || processes == nullptr || !absl::SimpleAtoi(processes, &number)) return 0;
  return number;
}

absl::Status AreNoGroup(const Launcher& launcher, uint32_t processes) {
  return absl::FailedPreconditionError(absl::StrCat(
      "this process is alone in its group, but ", launcher.processes, " says that ", launcher.name, " started ",
      processes, " processes: each would train alone. Start the program by `mpirun -n ", processes,
      "` of the MPI library that Hooke was built with, by `srun --mpi=pmix`, or as a job (`hooke run`). If each is to "
      "train alone, unset ",
      launcher.mark));
}

}  // namespace

bool HasMpiLauncher(const Environment& environment) {
  for (const Launcher& launcher : kMpiLaunchers) {
    if (environment(launcher.mark) != nullptr) return true;
  }
  return environment(kPmixRank) != nullptr;
}

absl::Status CheckLauncher(uint32_t ranks, const Environment& environment) {
  if (ranks > 1) return absl::OkStatus();
  for (const Launcher& launcher : kMpiLaunchers) {
    const uint32_t processes = ProcessesOf(launcher, environment);
    if (processes > 1) return AreNoGroup(launcher, processes);
    // A launcher further out, such as srun around mpirun, does not matter: this group has one process.
    if (processes == 1) return absl::OkStatus();
  }
  for (const Launcher& launcher : kOtherLaunchers) {
    const uint32_t processes = ProcessesOf(launcher, environment);
    if (processes > 1) return AreNoGroup(launcher, processes);
  }
  return absl::OkStatus();
}

}  // namespace hooke
