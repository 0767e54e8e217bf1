#ifndef HOOKE_CLIENT_DOCTOR_READ_MACHINE_H_
#define HOOKE_CLIENT_DOCTOR_READ_MACHINE_H_

// Reads the values that the checks of this machine judge: files of /proc and /sys, and the output of commands.

#include <string>

#include "client/doctor/machine_values.h"

namespace hooke {

struct ReadMachineOptions {
  std::string own_version;
  std::string programs_dir;  // The folder of Hooke's programs.
  std::string state_dir;     // Where daemons keep their state; empty: not known.
  std::string coordinator;   // HOST:PORT, towards which hooke-worker chooses its address.
  int port = 7411;           // Where hooke-server would listen.
  // The longest wait for mpirun. Other commands have less.
  absl::Duration start_limit = absl::Seconds(10);
};

// Reads everything. It takes about a second, and at most 17 seconds if commands hang. Makes a file in the state folder,
// or in its nearest folder that exists, and removes it. Call it before the process has threads, because it forks.
MachineValues ReadMachine(const ReadMachineOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_READ_MACHINE_H_
