#ifndef HOOKE_CLIENT_DOCTOR_DOCTOR_H_
#define HOOKE_CLIENT_DOCTOR_DOCTOR_H_

// `hooke doctor`: reads what this machine and its cluster are like, and says what to mend.

#include <string>

#include "absl/time/time.h"
#include "client/doctor/cluster_checks.h"
#include "client/doctor/finding.h"
#include "client/doctor/read_machine.h"

namespace hooke {

struct DoctorOptions {
  ReadMachineOptions machine;
  std::string source;                               // What gave machine.coordinator, for people: "--coordinator".
  bool by_default = false;                          // Nothing gave a coordinator, so it is the default.
  std::string token_file;                           // The path of the token's file; empty: none was given.
  absl::Duration connect_limit = absl::Seconds(3);  // The longest wait for the coordinator's connection.
  absl::Duration call_limit = absl::Seconds(3);     // The longest wait for the answer of a call.
};

// Returns the findings about the machine, then those about the cluster. On a healthy machine it takes about a second;
// the limits bound it. Call it before the process has threads.
Findings Diagnose(const DoctorOptions& options);

// Returns the findings about the machine. Pure.
Findings CheckMachine(const MachineValues& machine);

// Asks the coordinator for all that CheckCluster judges.
ClusterValues ReadCluster(const DoctorOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_DOCTOR_H_
