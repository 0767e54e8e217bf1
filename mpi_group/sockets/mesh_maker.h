#ifndef HOOKE_MPI_GROUP_SOCKETS_MESH_MAKER_H_
#define HOOKE_MPI_GROUP_SOCKETS_MESH_MAKER_H_

// One rank's part in making a mesh: connects to the peers below it, and takes the connections of those above it, all at
// the same time and in one thread. Part of socket_mesh.cc; tests let strangers meet it.

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
// On a port that is free, of all addresses of this host, IPv4 and IPv6; or of the loopback address alone, where nobody
// else can reach it.
absl::StatusOr<Listener> ListenAnywhere();
absl::StatusOr<Listener> ListenOnLoopback();

struct MeshPeer {
  int rank = -1;
  uint16_t port = 0;
  std::vector<HostAddress> addresses;  // In the order of trial.
};

class MeshMaker {
 public:
  struct Options {
    int rank = 0;
    int ranks = 0;
    GroupToken token = {};
    std::vector<MeshPeer> below;  // To connect to.
    std::vector<int> above;       // To wait for.
  };

  MeshMaker(Options options, FileDescriptor listener);

  // Returns what could not be done before `until`; empty if all is.
  std::string Run(absl::Time until);

  // By rank.
  std::vector<FileDescriptor> Take() { return std::move(connections_); }

 private:
  // Says nothing before it has shown the token. A stranger may keep it open and silent.
  struct Visitor {
    FileDescriptor socket;
    Greeting greeting;
    size_t received = 0;
  };
  struct Attempt {
    const MeshPeer* peer;
    size_t tried = 0;  // Of its addresses.
    FileDescriptor socket;
    bool connected = false;
    Greeting answer;
    size_t received = 0;
    absl::Time until;
    std::string mistakes;  // What came of each address.
  };

  bool Complete() const;
  // False when there is no address left.
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
