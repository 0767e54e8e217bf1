#include "client/doctor/doctor.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "client/coordinator_client.h"
#include "client/doctor/machine_checks.h"
#include "client/doctor/program_checks.h"
#include "wire/cluster_token.h"

namespace hooke {
namespace {

constexpr int kRoundTrips = 3;

}  // namespace

Findings CheckMachine(const MachineValues& machine) {
  return {CheckPrograms(machine),     CheckMpi(machine),        CheckMpiStart(machine),  CheckHostName(machine),
          CheckInterfaces(machine),   CheckPort(machine),       CheckCores(machine),     CheckMemory(machine),
          CheckSharedMemory(machine), CheckOpenFiles(machine),  CheckProcesses(machine), CheckClock(machine),
          CheckStateSpace(machine),   CheckStateSpeed(machine), CheckBlas(machine),      CheckPython(machine),
          CheckGpu(machine)};
}

ClusterValues ReadCluster(const DoctorOptions& options) {
  ClusterValues cluster;
  cluster.own_version = options.machine.own_version;
  cluster.address = options.machine.coordinator;
  cluster.source = options.source;
  cluster.by_default = options.by_default;
  cluster.token_file = options.token_file;
  const absl::StatusOr<ClusterToken> token = ReadClusterToken(options.token_file);
  cluster.token = token.status();
  if (!token.ok()) return cluster;
  absl::StatusOr<std::unique_ptr<CoordinatorClient>> client =
      CoordinatorClient::Connect(cluster.address, options.connect_limit, *token);
  cluster.connected = client.status();
  if (!client.ok()) return cluster;
  (*client)->LimitCalls(options.call_limit);
  for (int i = 0; i < kRoundTrips && cluster.answered.ok(); ++i) {
    cluster.asked = absl::Now();
    absl::StatusOr<v1::ListNodesResponse> nodes = (*client)->ListNodes();
    cluster.answered = nodes.status();
    if (!nodes.ok()) return cluster;
    cluster.nodes = *std::move(nodes);
    cluster.round_trip = std::min(cluster.round_trip, absl::Now() - cluster.asked);
  }
  absl::StatusOr<v1::ListJobsResponse> jobs = (*client)->ListJobs();
  cluster.told = absl::Now();
  cluster.answered = jobs.status();
  if (jobs.ok()) cluster.jobs = *std::move(jobs);
  return cluster;
}

Findings Diagnose(const DoctorOptions& options) {
  // The machine comes first, because its commands must run before gRPC has threads.
  Findings findings = CheckMachine(ReadMachine(options.machine));
  Findings cluster = CheckCluster(ReadCluster(options));
  findings.insert(findings.end(), std::make_move_iterator(cluster.begin()), std::make_move_iterator(cluster.end()));
  return findings;
}

}  // namespace hooke
