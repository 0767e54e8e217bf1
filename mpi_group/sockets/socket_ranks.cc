#include "mpi_group/sockets/socket_ranks.h"

#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/transport/in_process_transport.h"

namespace hooke {

SocketRanks::SocketRanks(const std::vector<int>& node_of_rank, absl::Duration patience)
    : inner_(MakeInProcessTransports(static_cast<int>(node_of_rank.size()))) {
  const size_t n = node_of_rank.size();
  std::vector<std::vector<FileDescriptor>> connections(n);
  for (std::vector<FileDescriptor>& own : connections) own.resize(n);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (node_of_rank[a] == node_of_rank[b]) continue;
      int ends[2] = {-1, -1};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
      connections[a][b] = FileDescriptor(ends[0]);
      connections[b][a] = FileDescriptor(ends[1]);
    }
  }
  for (size_t rank = 0; rank < n; ++rank) {
    std::unique_ptr<SocketTransport> transport = MakeSocketTransport(*inner_[rank], std::move(connections[rank]));
    transport->SetPatience(patience);
    ranks_.push_back(std::move(transport));
  }
}

void SocketRanks::Destroy(int rank) {
  ranks_[rank].reset();
  inner_[rank].reset();
}

}  // namespace hooke
