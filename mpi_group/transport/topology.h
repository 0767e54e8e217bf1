#ifndef HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
#define HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_

// Which ranks of a group share a node, that is memory and its network card. Learnt once, when the ranks of a group
// first meet; used by TransportGroup.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Stands for what a process must have in common with another to share memory with it and to talk to others through the
// same network card: the running kernel, the network namespace, /dev/shm and the user.
std::string NodeIdentity();
// Goes in its place where a number is enough. The same in all builds of a group's program.
uint64_t HashOfIdentity(const std::string& identity);

// The nodes of a group, numbered by their first ranks.
struct Nodes {
  std::vector<int> node_of_rank;
  std::vector<std::vector<int>> ranks_of_node;  // Ascending.
};
Nodes NodesFrom(const std::vector<std::string>& identity_of_rank);

// What rank 0 says to all: any text, of at most a mebibyte. Collective.
absl::StatusOr<std::string> ShareText(Transport& transport, const std::string& text, absl::Time deadline);

// Collective: as many records as ranks, one after the other; each rank comes with its own and goes with all. n-1
// messages to rank 0 and as many from it.
absl::Status GatherRecords(Transport& transport, absl::Span<char> records, absl::Time deadline);

// Collective; `identity` is this rank's. By GatherRecords.
absl::StatusOr<Nodes> GatherNodes(Transport& transport, const std::string& identity, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
