#ifndef HOOKE_MPI_GROUP_SOCKETS_MESH_MAKER_H_
#define HOOKE_MPI_GROUP_SOCKETS_MESH_MAKER_H_

// One rank's part in making a mesh. It connects to all peers of lower rank and accepts connections from all those of
// higher rank, at the same time and in one thread. A part of socket_mesh.cc, with a header of its own so that tests can
// connect to it as strangers.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/sockets/greeting.h"
#include "mpi_group/sockets/host_addresses.h"

namespace hooke {

struct Listener {
  FileDescriptor socket;
  uint16_t port = 0;
};
// ListenAnywhere() listens on a free port of all addresses of this host, IPv4 and IPv6. ListenOnLoopback() listens on a
// free port of the loopback address only, which no other host can reach.
absl::StatusOr<Listener> ListenAnywhere();
absl::StatusOr<Listener> ListenOnLoopback();

struct MeshPeer {
  int rank = -1;
  uint16_t port = 0;
  std::vector<HostAddress> addresses;  // In the order in which they are tried.
};

class MeshMaker {
 public:
  struct Options {
    int rank = 0;
    int ranks = 0;
    GroupToken token = {};
    std::vector<MeshPeer> below;  // Lower ranks, to connect to.
    std::vector<int> above;       // Higher ranks, which connect to this one.
  };

  MeshMaker(Options options, FileDescriptor listener);

  // Connects to all peers. Returns an empty string, or a description of what is missing, at `until` or once a peer has
  // no address left to try.
  std::string Run(absl::Time until);

  // The connections, indexed by rank.
  std::vector<FileDescriptor> Take() { return std::move(connections_); }

 private:
  // An accepted connection whose other end has not yet sent the token. Until it does, nothing is sent to it. A stranger
  // may keep the connection open and send nothing.
  struct Visitor {
    FileDescriptor socket;
    Greeting greeting;
    size_t received = 0;
  };
  struct Attempt {
    const MeshPeer* peer;
    size_t tried = 0;  // Number of its addresses that were tried.
    FileDescriptor socket;
    bool connected = false;
    Greeting answer;
    size_t received = 0;
    absl::Time until;
    absl::Time connect_by;  // Without a connection, the next address is tried then.
    std::string mistakes;   // For messages: how each tried address failed.
  };

  bool Complete() const;
  // Tries the next address; false if none is left.
  bool StartNext(Attempt& attempt, absl::Time now, absl::Time until);
  void Fail(Attempt& attempt, const std::string& what);
  void Advance(Attempt& attempt);
  void AcceptVisitors();
  void Hear(Visitor& visitor);
  void Wait(absl::Time until);
  std::string Missing() const;

  const Options options_;
  const FileDescriptor listener_;
  std::vector<FileDescriptor> connections_;
  std::deque<Attempt> attempts_;
  std::deque<Visitor> visitors_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_MESH_MAKER_H_
