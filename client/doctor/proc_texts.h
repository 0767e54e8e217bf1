#ifndef HOOKE_CLIENT_DOCTOR_PROC_TEXTS_H_
#define HOOKE_CLIENT_DOCTOR_PROC_TEXTS_H_

// Texts of /proc and names in /dev/shm, as values. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

struct CgroupFolder {
  std::string path;  // Absolute: /sys/fs/cgroup, or a folder below it.
  bool old = false;  // Of version 1 of cgroups.
};

// Returns the folders whose limits count, for the text of /proc/self/cgroup: each cgroup of the process and those above
// it. Those of version 1 come with the mounts /sys/fs/cgroup/cpu and memory. In a container a folder may not exist.
std::vector<CgroupFolder> CgroupFolders(absl::string_view proc_self_cgroup);

// Returns the inode of the socket that listens at `port`, for the text of /proc/net/tcp or tcp6; "" if there is none.
std::string ListeningInode(absl::string_view proc_net_tcp, int port);

// Returns the process id in the name "hooke-PID-HEX" of a file of shared memory; "none" if it is no such name.
std::string PidOfSharedFile(absl::string_view name);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_PROC_TEXTS_H_
