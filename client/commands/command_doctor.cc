#include <memory>
#include <string>

#include "client/commands/command.h"
#include "client/commands/coordinator_address.h"
#include "client/doctor/doctor.h"
#include "client/text/listing.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

int Doctor(const Invocation& invocation, const std::string& state_dir) {
  CoordinatorChoice choice;
  choice.flag = invocation.coordinator;
  choice.environment = invocation.environment_coordinator;
  choice.state_dir = invocation.default_state_dir();
  const absl::StatusOr<ChosenCoordinator> chosen = ChooseCoordinatorAndSource(choice);
  if (!chosen.ok()) return Report(invocation, chosen.status(), kUsage);
  const absl::StatusOr<HostPort> address = ParseHostPort(chosen->address);
  DoctorOptions options;
  options.machine.own_version = HOOKE_VERSION;
  options.machine.programs_dir = invocation.programs_dir;
  options.machine.state_dir = state_dir.empty() && !invocation.home.empty() ? invocation.home + "/.hooke" : state_dir;
  options.machine.coordinator = chosen->address;
  if (address.ok() && address->IsLoopback()) options.machine.port = address->port;
  options.source = chosen->source;
  options.by_default = chosen->by_default;
  options.token_file = invocation.absolute_token_file();
  const Findings findings = Diagnose(options);
  if (invocation.json()) {
    *invocation.out << DumpJson(FindingsToJson(findings), 2) << std::endl;
  } else {
    *invocation.out << FindingsText(findings, invocation.terminal) << std::flush;
  }
  return AnyFault(findings) ? kFailed : kSucceeded;
}

}  // namespace

void AddDoctorCommand(Command& program, Invocation& invocation) {
  Command& command =
      program.AddCommand("doctor", "Check this machine and its cluster, and say what to mend, each with the command");
  auto state_dir = std::make_shared<std::string>();
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Add("--state-dir", *state_dir, "The folder of daemons whose disk is checked. Default: ~/.hooke").Type("DIR");
  command.Footer(
      "A fault means that some use of Hooke fails here, a warning that it is slower or does not work in every case. "
      "Exit code 0: no fault; 1: faults. docs/doctor.md lists the checks.\n"
      "It starts two processes with mpirun, and writes and removes a small file in the folder.");
  command.Action([&invocation, state_dir] { return Doctor(invocation, *state_dir); });
}

}  // namespace hooke
