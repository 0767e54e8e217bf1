// hooke-remote: mpirun starts it in place of ssh, for each other node of a group on several nodes. It sends the command
// to the worker's daemon on this node, over the unix socket of the group. Its exit status shows the daemon's answer.
//
// It ends before the command does. The daemon on the other node owns the processes that the command starts.

#include <stdlib.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "wire/channel.h"
#include "wire/cluster_token.h"
#include "worker/launch/agent_call.h"

namespace hooke {
namespace {

constexpr std::chrono::seconds kPatience(20);

int Fail(const std::string& why) {
  std::cerr << "hooke-remote: " << why << std::endl;
  return 1;
}

int Main(const std::vector<std::string>& arguments) {
  const char* socket = getenv("HOOKE_REMOTE_SOCKET");
  if (socket == nullptr) return Fail("only hooke-worker's mpirun starts this program");
  const std::optional<AgentCall> call = ParseAgentCall(arguments);
  if (!call.has_value()) return Fail("mpirun wants a program that is no daemon of an MPI library that Hooke knows");
  v1::StartRemoteRequest request;
  request.set_host(call->host);
  for (const std::string& argument : call->arguments) request.add_arguments(argument);
  const auto stub =
      v1::RankEvents::NewStub(OpenChannel(absl::StrCat("unix:", socket), grpc::ChannelArguments(), CallCredential()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::StartRemoteResponse response;
  const grpc::Status status = stub->StartRemote(&context, request, &response);
  if (status.ok()) return 0;
  return Fail(absl::StrCat("the worker at ", socket, ": ", status.error_message()));
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) { return hooke::Main({argv + 1, argv + argc}); }
