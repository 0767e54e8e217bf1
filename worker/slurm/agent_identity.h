#ifndef HOOKE_WORKER_SLURM_AGENT_IDENTITY_H_
#define HOOKE_WORKER_SLURM_AGENT_IDENTITY_H_

// Who an agent is for the coordinator, which serves only one agent of a site at a time. An agent that starts again in
// its folder is the same one, so it goes on at once. Another one has to wait until the first was silent for a while.

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hooke {

class AgentIdentity {
 public:
  // Takes the identity that is kept in the file `instance-HOST` of the folder, and makes it if there is none. So agents
  // of two hosts that share the folder are two. FAILED_PRECONDITION: another process of this host has it. INTERNAL: the
  // file cannot be read or written.
  static absl::StatusOr<std::unique_ptr<AgentIdentity>> Take(const std::string& folder, const std::string& host);

  // Gives it back. The kernel does so, too, if the process is killed.
  ~AgentIdentity();
  AgentIdentity(const AgentIdentity&) = delete;
  AgentIdentity& operator=(const AgentIdentity&) = delete;

  const std::string& instance() const { return instance_; }

 private:
  explicit AgentIdentity(int fd) : fd_(fd) {}

  const int fd_;  // The file, locked.
  std::string instance_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_AGENT_IDENTITY_H_
