#ifndef HOOKE_CLIENT_LOCAL_CLUSTER_CLUSTER_FOLDER_H_
#define HOOKE_CLIENT_LOCAL_CLUSTER_CLUSTER_FOLDER_H_

// The folder of a local cluster. One `hooke up` or `hooke run` at a time owns it. Other commands find the coordinator's
// address in it.
//
//   DIR/lock         locked for as long as its owner runs; holds the owner's pid and command, a line each
//   DIR/coordinator  HOST:PORT and a line end, once the whole cluster is ready; meaningless unless the lock is held
//   DIR/logs/        one log for each daemon
//   DIR/<daemon>/    the daemon's own state

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Owns the folder until it is destroyed. Movable, not copyable.
class ClusterFolder {
 public:
  // Takes the folder for the command ("hooke up"), and creates it if it is missing. ALREADY_EXISTS, with the owner, if
  // another process owns it. FAILED_PRECONDITION if it cannot be made, locked or written.
  static absl::StatusOr<ClusterFolder> Own(const std::string& path, absl::string_view command);

  ClusterFolder(ClusterFolder&& other) noexcept;
  ClusterFolder& operator=(ClusterFolder&& other) = delete;
  ~ClusterFolder();

  const std::string& path() const { return path_; }

  // Writes the coordinator's address. From now on other commands find the cluster in this folder.
  absl::Status Announce(absl::string_view coordinator);

 private:
  ClusterFolder(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  std::string path_;
  int lock_fd_;  // -1 after a move.
};

struct ClusterOwner {
  std::string pid;
  std::string command;  // "hooke up" or "hooke run".
};
// The present or last owner of the folder. Empty texts if there was none.
ClusterOwner OwnerOf(const std::string& path);

// The coordinator of the cluster that now runs in the folder; nullopt if none does.
std::optional<std::string> RunningClusterAddress(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_CLIENT_LOCAL_CLUSTER_CLUSTER_FOLDER_H_
