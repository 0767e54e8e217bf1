#include "absl/time/clock.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

int ListNodes(const Invocation& invocation) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::ListNodesResponse> nodes = coordinator->ListNodes();
  if (!nodes.ok()) return Report(invocation, nodes.status());
  if (invocation.json()) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const v1::NodeStatus& node : nodes->nodes()) array.push_back(NodeToJson(node));
    *invocation.out << DumpJson({{"nodes", array}}, 2) << std::endl;
  } else {
    *invocation.out << NodesTable(*nodes, absl::Now()) << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddNodesCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "nodes",
      "List servers and workers: alive, silent or unusable and why, slots in use, centers held in memory and on disk");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Action([&invocation] { return ListNodes(invocation); });
}

}  // namespace hooke
