#ifndef HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_
#define HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_

// The folders of a worker and of its running groups.
//
// <state folder>/lock               held by the daemon that uses the folder
// <state folder>/groups/<group>/    start file, the launcher's session files; one for each running group
// /dev/shm/hooke-XXXXXX/            the group's unix socket and what the MPI library's own ranks share: on a tmpfs,
//                                   under a name short enough for a socket; "memory" in the group's folder is a link
//                                   to it. /tmp where there is no /dev/shm.
//
// Folders are readable by their owner alone. What a killed daemon left is removed when the next one opens the state
// folder.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

class WorkerFolder {
 public:
  // Makes the folder where it is missing, locks it, removes what another daemon left in it. FAILED_PRECONDITION: in use
  // by another daemon.
  static absl::StatusOr<std::unique_ptr<WorkerFolder>> Open(const std::string& path);
  ~WorkerFolder();
  WorkerFolder(const WorkerFolder&) = delete;
  WorkerFolder& operator=(const WorkerFolder&) = delete;

  std::string groups() const { return path_ + "/groups"; }

 private:
  WorkerFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // File descriptor.
};

class GroupFolder {
 public:
  // `groups`: WorkerFolder::groups(). `name`: 1 to 100 of [a-z0-9-], of no other running group.
  static absl::StatusOr<std::unique_ptr<GroupFolder>> Make(const std::string& groups, absl::string_view name);
  // Removes both folders.
  ~GroupFolder();
  GroupFolder(const GroupFolder&) = delete;
  GroupFolder& operator=(const GroupFolder&) = delete;

  const std::string& path() const { return path_; }
  const std::string& memory_path() const { return memory_path_; }
  std::string start_file() const { return path_ + "/start"; }
  std::string socket() const { return memory_path_ + "/events"; }  // Within what a socket's address holds.

  absl::Status WriteStartFile(const std::string& bytes) const;

 private:
  GroupFolder(std::string path, std::string memory_path)
      : path_(std::move(path)), memory_path_(std::move(memory_path)) {}

  const std::string path_;
  const std::string memory_path_;
};

// OK, or INVALID_ARGUMENT when `path` is longer than a unix socket's address can be (107 bytes).
absl::Status CheckSocketPath(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_
