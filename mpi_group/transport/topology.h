#ifndef HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
#define HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_

// Finds out which ranks of a group share a node, that is, its memory and its network card. Ranks do it once, when a
// group is set up.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Identifies this process's node: the running kernel, the network namespace, /dev/shm and the user. Processes with
// equal identities can share memory and have the same network card.
std::string NodeIdentity();
// A 64-bit hash of an identity, the same in all builds of a program.
uint64_t HashOfIdentity(const std::string& identity);

// The nodes of a group, numbered in the order of their lowest ranks.
struct Nodes {
  std::vector<int> node_of_rank;
  std::vector<std::vector<int>> ranks_of_node;  // Ascending.
};
Nodes NodesFrom(const std::vector<std::string>& identity_of_rank);

// Collective: returns rank 0's text on all ranks. INVALID_ARGUMENT on all ranks if it is longer than 1 MiB.
absl::StatusOr<std::string> ShareText(Transport& transport, const std::string& text, absl::Time deadline);

// Collective: gathers one record of equal size from each rank. `records` has room for one record per rank, in rank
// order. On entry it holds this rank's record, on return those of all ranks. n-1 messages go to rank 0, and n-1 come
// from rank 0.
absl::Status GatherRecords(Transport& transport, absl::Span<char> records, absl::Time deadline);

// Collective: gathers the identities of all ranks' nodes; `identity` is this rank's.
absl::StatusOr<Nodes> GatherNodes(Transport& transport, const std::string& identity, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_TOPOLOGY_H_
