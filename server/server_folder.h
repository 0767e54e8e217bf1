#ifndef HOOKE_SERVER_SERVER_FOLDER_H_
#define HOOKE_SERVER_SERVER_FOLDER_H_

// The folder of one server, which it alone uses while it runs:
//
//   lock              held for the server's life
//   identity          32 hexadecimal digits, made at the first start: by them the coordinator knows this server again
//   centers/          snapshots of shards
//   coordinator.db    jobs, where it is the coordinator
//   logs/             jobs' logs, where it is the coordinator
//   profiles/         jobs' profiles, where it is the coordinator
//   files/            the files that jobs send to their groups, where it is the coordinator

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

class ServerFolder {
 public:
  // Makes the folder and takes its lock. If the folder has no identity yet, draws one. FAILED_PRECONDITION: another
  // server has the folder, or the identity cannot be written. UNAVAILABLE: the folder or its lock file cannot be made.
  // DATA_LOSS: the identity is damaged.
  static absl::StatusOr<std::unique_ptr<ServerFolder>> Open(const std::string& path);
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;

  // Random, and the same at each start with this folder, whatever the server's address is then.
  const std::string& identity() const { return identity_; }

  std::string centers() const { return path_ + "/centers"; }
  std::string job_store() const { return path_ + "/coordinator.db"; }
  std::string logs() const { return path_ + "/logs"; }
  std::string profiles() const { return path_ + "/profiles"; }
  std::string files() const { return path_ + "/files"; }

 private:
  ServerFolder(const std::string& path, int lock) : path_(path), lock_(lock) {}

  absl::Status ReadOrDrawIdentity();

  const std::string path_;
  const int lock_;
  std::string identity_;  // Set by Open.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVER_FOLDER_H_
