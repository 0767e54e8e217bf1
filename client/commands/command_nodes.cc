#include <memory>

#include "absl/time/clock.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/links_text.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

int ListNodes(const Invocation& invocation, bool links) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<v1::ListNodesResponse> nodes = coordinator->ListNodes(links);
  if (!nodes.ok()) return Report(invocation, nodes.status());
  if (invocation.json()) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const v1::NodeStatus& node : nodes->nodes()) array.push_back(NodeToJson(node));
    nlohmann::ordered_json document = {{"nodes", array}};
    if (links) {
      document["links"] = nlohmann::ordered_json::array();
      for (const v1::NodeLink& link : nodes->links()) document["links"].push_back(LinkToJson(link));
    }
    *invocation.out << DumpJson(document, 2) << std::endl;
  } else if (links) {
    *invocation.out << LinksText(*nodes, absl::Now()) << std::flush;
  } else {
    *invocation.out << NodesTable(*nodes, absl::Now(), absl::LocalTimeZone()) << std::flush;
  }
  return kSucceeded;
}

}  // namespace

void AddNodesCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("nodes",
                                        "List servers and workers: alive, silent, draining, avoided or unusable and "
                                        "why, slots in use, centers held in memory and on disk");
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  const auto links = std::make_shared<bool>(false);
  command.Add("--links", *links,
              "Show instead the addresses of workers for groups on several nodes, and for pairs of workers the round "
              "trip and the bandwidth that the last group on both has measured at its start");
  command.Action([&invocation, links] { return ListNodes(invocation, *links); });
}

}  // namespace hooke
