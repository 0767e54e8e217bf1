#ifndef HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_
#define HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_

// The folders of a worker and of its running groups.
//
// <state folder>/lock               held by the daemon that uses the folder
// <state folder>/groups/<group>/    one for each running group: its start file and the launcher's session files
// <state folder>/groups/<group>/files/   the group's copy of the job's files, if it has some
// <state folder>/files/             the cache of the files of jobs (worker/file_cache/)
// /dev/shm/hooke-XXXXXX/            the group's unix socket, and files that ranks share through the MPI library. It is
//                                   on a tmpfs, and its name is short enough for a socket. The link "memory" in the
//                                   group's folder points to it. Without /dev/shm it is in /tmp.
//
// Only the owner can read what lies in groups/, in files/ and in the folder of /dev/shm. A daemon that opens the state
// folder removes what a killed daemon has left.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

class WorkerFolder {
 public:
  // Makes the folder if it is missing, locks it, and removes the remains of an earlier daemon. FAILED_PRECONDITION: it
  // cannot be made, or another daemon uses it.
  static absl::StatusOr<std::unique_ptr<WorkerFolder>> Open(const std::string& path);
  ~WorkerFolder();
  WorkerFolder(const WorkerFolder&) = delete;
  WorkerFolder& operator=(const WorkerFolder&) = delete;

  std::string groups() const { return path_ + "/groups"; }
  std::string files() const { return path_ + "/files"; }

 private:
  WorkerFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // File descriptor.
};

class GroupFolder {
 public:
  // Makes the two folders of a group. `groups` is WorkerFolder::groups(). `name` is 1 to 100 characters of [a-z0-9-];
  // no other running group may have it.
  static absl::StatusOr<std::unique_ptr<GroupFolder>> Make(const std::string& groups, absl::string_view name);
  // Removes both folders.
  ~GroupFolder();
  GroupFolder(const GroupFolder&) = delete;
  GroupFolder& operator=(const GroupFolder&) = delete;

  const std::string& path() const { return path_; }
  const std::string& memory_path() const { return memory_path_; }
  std::string files_path() const { return path_ + "/files"; }
  std::string start_file() const { return path_ + "/start"; }
  std::string command_file() const { return path_ + "/command"; }
  std::string rank_script() const { return path_ + "/rank"; }
  std::string socket() const { return memory_path_ + "/events"; }  // Short enough for a socket's address.

  absl::Status WriteStartFile(const std::string& bytes) const;
  absl::Status WriteCommandFile(const std::string& script) const;
  absl::Status WriteRankScript(const std::string& script) const;
  // Links to a program from a path without spaces and colons, and returns that path.
  absl::StatusOr<std::string> LinkAgent(const std::string& program) const;

 private:
  GroupFolder(std::string path, std::string memory_path)
      : path_(std::move(path)), memory_path_(std::move(memory_path)) {}

  const std::string path_;
  const std::string memory_path_;
};

// Checks a unix socket's path. INVALID_ARGUMENT if it is longer than a unix socket's address can be (107 bytes).
absl::Status CheckSocketPath(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_FOLDER_H_
