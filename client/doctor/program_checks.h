#ifndef HOOKE_CLIENT_DOCTOR_PROGRAM_CHECKS_H_
#define HOOKE_CLIENT_DOCTOR_PROGRAM_CHECKS_H_

// Checks of the programs and libraries that a node needs: Hooke's own, MPI, the BLAS of LibTorch, Python, and those of
// a GPU. Each function judges values that have been read. Pure.

#include <string>

#include "absl/strings/string_view.h"
#include "client/doctor/finding.h"
#include "client/doctor/machine_values.h"

namespace hooke {

Finding CheckPrograms(const MachineValues& machine);
Finding CheckMpi(const MachineValues& machine);
Finding CheckMpiStart(const MachineValues& machine);
Finding CheckInterfaces(const MachineValues& machine);
Finding CheckBlas(const MachineValues& machine);
Finding CheckPython(const MachineValues& machine);
Finding CheckGpu(const MachineValues& machine);

// Reads what `hooke-worker --describe` prints: lines of a key and a value. Unknown keys are ignored.
WorkerDescription ParseWorkerDescription(absl::string_view text);

// Returns the family of the MPI library whose `mpirun --version` prints `text`: "openmpi", "mpich", "intelmpi",
// or "" for another.
std::string MpiFamily(absl::string_view text);

// Returns the path of libblas.so.3 in what `ldd` prints; "" if there is none.
std::string BlasInLdd(absl::string_view text);

// The Python program whose output CheckPython reads: "python VERSION PATH", then "NAME VERSION" or "NAME -" for each
// package, without importing any.
extern const char kPythonScript[];

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_PROGRAM_CHECKS_H_
