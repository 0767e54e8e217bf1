#ifndef HOOKE_WORKER_API_LAUNCHER_H_
#define HOOKE_WORKER_API_LAUNCHER_H_

// Says whether mpirun, srun or another launcher started this process, if no worker did. The functions read variables
// only through the argument that the caller gives.

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace hooke {

// Returns a variable's value, or null if it is not set; `getenv` is one.
using Environment = std::function<const char*(const char* name)>;

// Returns whether an MPI launcher started this process: mpirun, or srun with PMI or PMIx. From such a launcher MPI
// learns of the other processes.
bool HasMpiLauncher(const Environment& environment);

// Returns an error if a launcher says that it started several processes, but the group has only this one. Each would
// train alone on all of the data, and nobody would notice: torchrun and horovodrun start no MPI, srun does so only with
// --mpi, and a program is no rank of another MPI library's mpirun. `ranks` is the size of the group.
absl::Status CheckLauncher(uint32_t ranks, const Environment& environment);

}  // namespace hooke

#endif  // HOOKE_WORKER_API_LAUNCHER_H_
