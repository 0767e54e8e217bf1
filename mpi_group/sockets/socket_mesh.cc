#include "mpi_group/sockets/socket_mesh.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mpi_group/collectives/on_all_ranks.h"
#include "mpi_group/sockets/greeting.h"
#include "mpi_group/sockets/mesh_maker.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// A rank's description of itself for the others. It travels as raw bytes, because the ranks of a group run the same
// program.
struct Endpoint {
  static constexpr size_t kAddresses = 16;  // Further addresses are left out.

  uint64_t identity = 0;  // Hash of MeshOptions::identity.
  GroupToken token = {};  // Rank 0's token becomes the group's.
  uint32_t addresses = 0;
  uint16_t port = 0;  // 0: the rank cannot listen.
  bool rdma = false;
  std::array<HostAddress, kAddresses> address;
};
static_assert(std::is_trivially_copyable_v<Endpoint>, "endpoints travel as bytes");

Endpoint OwnEndpoint(const MeshOptions& options, uint16_t port) {
  Endpoint own;
  own.identity = HashOfIdentity(options.identity);
  own.port = port;
  own.rdma = options.rdma;
  own.addresses = static_cast<uint32_t>(std::min(options.addresses.size(), Endpoint::kAddresses));
  std::copy_n(options.addresses.begin(), own.addresses, own.address.begin());
  // Without a secret token anybody could connect, so the rank does not reveal its port.
  if (getrandom(own.token.data(), own.token.size(), 0) != static_cast<ssize_t>(own.token.size())) own.port = 0;
  return own;
}

absl::Span<const HostAddress> AddressesOf(const Endpoint& endpoint) {
  return absl::MakeConstSpan(endpoint.address).first(std::min<size_t>(endpoint.addresses, Endpoint::kAddresses));
}

// True if all ranks are on one machine, even if the group treats parts of it as several nodes.
absl::StatusOr<bool> OnOneHost(Transport& transport, const std::string& identity, absl::Time deadline) {
  std::vector<uint64_t> identities(transport.size());
  identities[transport.rank()] = HashOfIdentity(identity);
  absl::Status status = GatherRecords(
      transport, {reinterpret_cast<char*>(identities.data()), identities.size() * sizeof(uint64_t)}, deadline);
  if (!status.ok()) return status;
  return std::count(identities.begin(), identities.end(), identities[0]) == transport.size();
}

// Why there can be no mesh; empty if there can. All ranks know the same endpoints and come to the same answer.
std::string WhyNot(absl::Span<const Endpoint> endpoints, const MeshOptions& options) {
  for (size_t rank = 0; rank < endpoints.size(); ++rank) {
    if (endpoints[rank].port == 0) return absl::StrCat("rank ", rank, " cannot listen on a TCP port");
    if (endpoints[rank].rdma && !options.even_with_rdma) {
      return absl::StrCat("rank ", rank, " has an RDMA device, which MPI knows how to use");
    }
  }
  return "";
}

MeshMaker::Options MakerOptions(int rank, const Nodes& nodes, absl::Span<const Endpoint> endpoints) {
  MeshMaker::Options options;
  options.rank = rank;
  options.ranks = static_cast<int>(endpoints.size());
  options.token = endpoints[0].token;
  const Endpoint& own = endpoints[rank];
  for (int peer = 0; peer < options.ranks; ++peer) {
    if (nodes.node_of_rank[peer] == nodes.node_of_rank[rank]) continue;
    if (peer > rank) {
      options.above.push_back(peer);
      continue;
    }
    const Endpoint& other = endpoints[peer];
    options.below.push_back({peer, other.port, InOrderOfTrial(AddressesOf(own), AddressesOf(other))});
    std::vector<HostAddress>& addresses = options.below.back().addresses;
    if (own.identity == other.identity) addresses.insert(addresses.begin(), LoopbackAddress());
  }
  return options;
}

}  // namespace

absl::StatusOr<Mesh> ConnectMesh(Transport& transport, const Nodes& nodes, const MeshOptions& options,
                                 absl::Time deadline) {
  const absl::StatusOr<bool> one_host = OnOneHost(transport, options.identity, deadline);
  if (!one_host.ok()) return one_host.status();
  absl::StatusOr<Listener> listener = *one_host ? ListenOnLoopback() : ListenAnywhere();
  std::vector<Endpoint> endpoints(transport.size());
  endpoints[transport.rank()] = OwnEndpoint(options, listener.ok() ? listener->port : 0);
  absl::Status status = GatherRecords(
      transport, {reinterpret_cast<char*>(endpoints.data()), endpoints.size() * sizeof(Endpoint)}, deadline);
  if (!status.ok()) return status;
  Mesh mesh;
  mesh.why_not = WhyNot(endpoints, options);
  if (!mesh.why_not.empty()) return mesh;
  const absl::Time now = SteadyNow();
  MeshMaker maker(MakerOptions(transport.rank(), nodes, endpoints), std::move(listener->socket));
  // Takes at most half of the time until the deadline; the rest is for going on without sockets.
  mesh.why_not = maker.Run(now + std::min(options.patience, (deadline - now) / 2));
  const absl::StatusOr<bool> all = OnAllRanks(transport, mesh.why_not.empty(), deadline);
  if (!all.ok()) return all.status();
  if (*all) {
    mesh.connections = maker.Take();
  } else if (mesh.why_not.empty()) {
    mesh.why_not = "other ranks of the group cannot connect";
  }
  return mesh;
}

}  // namespace hooke
