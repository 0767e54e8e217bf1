#include "mpi_group/node/peer_processes.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hooke {
namespace {

constexpr int kNotWatched = -1;
constexpr long kPidfdOpen = 434;  // SYS_pidfd_open, which older headers lack.

}  // namespace

ProcessIdentity OwnProcess() {
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) != 0) return {};
  return {getpid(), space.st_dev, space.st_ino};
}

PeerProcesses::~PeerProcesses() {
  for (int watched : watched_) {
    if (watched != kNotWatched) close(watched);
  }
}

void PeerProcesses::Add(const ProcessIdentity& peer) {
  const ProcessIdentity own = OwnProcess();
  const bool same_namespace =
      peer.namespace_device == own.namespace_device && peer.namespace_inode == own.namespace_inode;
  const bool known = own.number != 0 && peer.number != 0 && peer.number != own.number && same_namespace;
  // A pidfd is closed on exec.
  watched_.push_back(known ? static_cast<int>(syscall(kPidfdOpen, static_cast<pid_t>(peer.number), 0)) : kNotWatched);
}

bool PeerProcesses::HasEnded(int local_rank) const {
  if (local_rank >= static_cast<int>(watched_.size())) return false;
  pollfd watched = {watched_[local_rank], POLLIN, 0};
  return watched.fd != kNotWatched && poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN) != 0;
}

}  // namespace hooke
