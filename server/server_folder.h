#ifndef HOOKE_SERVER_SERVER_FOLDER_H_
#define HOOKE_SERVER_SERVER_FOLDER_H_

// The folder of one server, which it alone uses while it runs:
//
//   lock              held for the server's life
//   centers/          snapshots of shards
//   coordinator.db    jobs, where it is the coordinator
//   logs/             jobs' logs, where it is the coordinator
//   profiles/         jobs' profiles, where it is the coordinator

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hooke {

class ServerFolder {
 public:
  // Makes the folder and takes its lock. FAILED_PRECONDITION: another server has it; UNAVAILABLE: it cannot be made.
  static absl::StatusOr<std::unique_ptr<ServerFolder>> Open(const std::string& path);
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;

  std::string centers() const { return path_ + "/centers"; }
  std::string job_store() const { return path_ + "/coordinator.db"; }
  std::string logs() const { return path_ + "/logs"; }
  std::string profiles() const { return path_ + "/profiles"; }

 private:
  ServerFolder(const std::string& path, int lock) : path_(path), lock_(lock) {}

  const std::string path_;
  const int lock_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVER_FOLDER_H_
