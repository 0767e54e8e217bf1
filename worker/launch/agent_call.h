#ifndef HOOKE_WORKER_LAUNCH_AGENT_CALL_H_
#define HOOKE_WORKER_LAUNCH_AGENT_CALL_H_

// mpirun calls our agent, hooke-remote, in place of ssh. This reads from the call what mpirun wants to start. Pure.

#include <optional>
#include <string>
#include <vector>

namespace hooke {

// A call of the agent by mpirun.
struct AgentCall {
  std::string host;
  // Arguments for the MPI library's daemon on that node, without the program's name.
  std::vector<std::string> arguments;
};

// Reads the arguments with which mpirun has called its agent: options, a host, and a command for a shell there.
// nullopt if the command starts no daemon of an MPI library.
std::optional<AgentCall> ParseAgentCall(const std::vector<std::string>& arguments);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_AGENT_CALL_H_
