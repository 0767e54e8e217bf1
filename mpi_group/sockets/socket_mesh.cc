#include "mpi_group/sockets/socket_mesh.h"

#include <sys/random.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/on_all_ranks.h"
#include "mpi_group/collectives/texts.h"
#include "mpi_group/sockets/endpoint.h"
#include "mpi_group/sockets/greeting.h"
#include "mpi_group/sockets/mesh_maker.h"
#include "mpi_group/sockets/open_files.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/sub_transport.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

// Files that a rank opens besides its connections: a listener, an epoll instance, strangers, and what others may open
// at the same time.
constexpr uint64_t kOtherFiles = 64;

// Rank 0 tells this to all others before they listen.
struct Opening {
  uint64_t identity = 0;  // Hash of MeshOptions::identity.
  GroupToken token = {};
};
static_assert(std::is_trivially_copyable_v<Opening>, "it travels as bytes");

// A token that cannot be guessed; all zeros if the system has none.
GroupToken NewToken() {
  GroupToken token = {};
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) token = {};
  return token;
}

// Why this rank cannot be part of a mesh; empty if it can.
std::string Objection(int rank, const absl::Status& listens, const Opening& opening, size_t connections) {
  if (!listens.ok()) return absl::StrCat("rank ", rank, " cannot listen on a TCP port: ", listens.message());
  // Without a secret token anybody could connect, so no rank reveals its port.
  if (opening.token == GroupToken{}) return "rank 0 has no random numbers for a token";
  const absl::Status room = MakeRoomForFiles(connections + kOtherFiles);
  if (!room.ok()) return absl::StrCat("rank ", rank, " ", room.message());
  return "";
}

// Collective among the ranks of a circle: returns the endpoints of all of them, in its order.
absl::StatusOr<std::vector<Endpoint>> ShareEndpoints(Transport& transport, const std::vector<int>& circle,
                                                     const Endpoint& own, absl::Time deadline) {
  const std::unique_ptr<Transport> among = MakeSubTransport(transport, circle);
  const absl::StatusOr<std::string> joined = JoinTexts(*among, RecordOf(own), deadline);
  if (!joined.ok()) return joined.status();
  const absl::StatusOr<std::string> records = ShareText(*among, *joined, deadline);
  if (!records.ok()) return records.status();
  return ReadEndpoints(*records, circle.size());
}

// endpoints[i] is the endpoint of rank circle[i].
MeshMaker::Options MakerOptions(int rank, const Nodes& nodes, const std::vector<int>& circle,
                                const std::vector<Endpoint>& endpoints, const Endpoint& own, bool chosen) {
  MeshMaker::Options options;
  options.rank = rank;
  options.ranks = static_cast<int>(nodes.node_of_rank.size());
  for (size_t i = 0; i < circle.size(); ++i) {
    const int peer = circle[i];
    if (nodes.node_of_rank[peer] == nodes.node_of_rank[rank]) continue;
    if (peer > rank) {
      options.above.push_back(peer);
      continue;
    }
    options.below.push_back(
        {peer, endpoints[i].port,
         InOrderOfTrial(own.addresses, endpoints[i].addresses, static_cast<size_t>(PlaceOf(rank, nodes)), chosen)});
    std::vector<HostAddress>& addresses = options.below.back().addresses;
    if (own.identity == endpoints[i].identity) addresses.insert(addresses.begin(), LoopbackAddress());
  }
  return options;
}

}  // namespace

std::vector<int> CircleOf(int rank, const Nodes& nodes, bool two_level) {
  std::vector<int> circle;
  if (!two_level || nodes.node_of_rank.size() <= static_cast<size_t>(kAllPairsRanks)) {
    circle.resize(nodes.node_of_rank.size());
    std::iota(circle.begin(), circle.end(), 0);
    return circle;
  }
  const auto place = static_cast<size_t>(PlaceOf(rank, nodes));
  for (const std::vector<int>& ranks : nodes.ranks_of_node) {
    if (place < ranks.size()) circle.push_back(ranks[place]);
  }
  return circle;
}

absl::StatusOr<Mesh> ConnectMesh(Transport& transport, const Nodes& nodes, const std::vector<int>& circle,
                                 const MeshOptions& options, absl::Time deadline) {
  const int rank = transport.rank();
  Endpoint own;
  own.identity = HashOfIdentity(options.identity);
  own.addresses = options.addresses;
  Opening opening;
  if (rank == 0) opening = {own.identity, NewToken()};
  absl::Status status = Spread(transport, {reinterpret_cast<char*>(&opening), sizeof(opening)}, deadline);
  if (!status.ok()) return status;
  // The ranks may all be on one machine, even if the group treats parts of it as several nodes.
  const absl::StatusOr<bool> one_host = OnAllRanks(transport, own.identity == opening.identity, deadline);
  if (!one_host.ok()) return one_host.status();
  absl::StatusOr<Listener> listener = *one_host ? ListenOnLoopback() : ListenAnywhere();
  absl::StatusOr<std::string> why_not =
      FirstObjection(transport, Objection(rank, listener.status(), opening, circle.size()), deadline);
  if (!why_not.ok()) return why_not.status();
  Mesh mesh;
  mesh.why_not = *why_not;
  if (!mesh.why_not.empty()) return mesh;
  own.port = listener->port;
  const absl::StatusOr<std::vector<Endpoint>> endpoints = ShareEndpoints(transport, circle, own, deadline);
  if (!endpoints.ok()) return endpoints.status();
  const absl::Time now = SteadyNow();
  MeshMaker::Options maker_options = MakerOptions(rank, nodes, circle, *endpoints, own, options.chosen);
  maker_options.token = opening.token;
  MeshMaker maker(std::move(maker_options), std::move(listener->socket));
  // Takes at most half of the time until the deadline; the rest is for going on without sockets.
  mesh.why_not = maker.Run(now + std::min(options.patience, (deadline - now) / 2));
  why_not = FirstObjection(transport, mesh.why_not, deadline);
  if (!why_not.ok()) return why_not.status();
  if (why_not->empty()) {
    mesh.connections = maker.Take();
  } else if (mesh.why_not.empty()) {
    mesh.why_not = *why_not;
  }
  return mesh;
}

}  // namespace hooke
