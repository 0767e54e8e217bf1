#ifndef HOOKE_MPI_GROUP_SOCKETS_SOCKET_RANKS_H_
#define HOOKE_MPI_GROUP_SOCKETS_SOCKET_RANKS_H_

// For tests: ranks that are threads of one process, and whose messages between nodes go over sockets.

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/sockets/socket_transport.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class SocketRanks {
 public:
  // Rank r is on node node_of_rank[r]. Socket pairs stand for connections.
  explicit SocketRanks(const std::vector<int>& node_of_rank,
                       absl::Duration patience = SocketPatienceFor(/*enough_cores=*/false));

  int size() const { return static_cast<int>(ranks_.size()); }
  Transport& operator[](int rank) { return *ranks_[rank]; }
  // Destroys the rank's transports, as when its process ends.
  void Destroy(int rank);

 private:
  std::vector<std::unique_ptr<Transport>> inner_;
  std::vector<std::unique_ptr<Transport>> ranks_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_SOCKET_RANKS_H_
