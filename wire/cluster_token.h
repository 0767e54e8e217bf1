#ifndef HOOKE_WIRE_CLUSTER_TOKEN_H_
#define HOOKE_WIRE_CLUSTER_TOKEN_H_

// The token of a cluster: a secret that all its programs share. Whoever has the token may do whatever the cluster can
// do. No function of this file logs the token or puts it into an error.

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// The credential that a caller adds to each of its calls, so that the server admits them (OpenChannel in
// wire/channel.h). If `secret` is empty, the caller adds nothing.
struct CallCredential {
  std::string secret;
  // If empty, `secret` is the cluster's token. Otherwise the credential is good for the ranks of this job only.
  std::string job_id;
};

class ClusterToken {
 public:
  ClusterToken() = default;  // Makes no token: everybody who reaches the cluster may call it.
  explicit ClusterToken(std::string secret) : secret_(std::move(secret)) {}

  bool empty() const { return secret_.empty(); }

  // Returns the credential of a program that holds the token.
  CallCredential ForCalls() const { return {secret_, ""}; }
  // Returns the credential of a job's ranks. Nobody can derive the token from it. Without a token it is empty.
  CallCredential ForJob(absl::string_view job_id) const;

  // Returns whether this token made the credential. The time that this takes does not depend on where two secrets
  // differ.
  bool Made(const CallCredential& credential) const;

 private:
  std::string secret_;
};

// Reads a token file: one line of 16 to 4096 printable ASCII characters without spaces. An empty path gives no token.
// NOT_FOUND: there is no such file. PERMISSION_DENIED: it cannot be read, its mode gives rights to others than its
// owner, or it belongs to neither this user nor root. If it is root's and this user is not root, its group may read it.
// INVALID_ARGUMENT: it does not hold a token. The errors name the file and the fault.
absl::StatusOr<ClusterToken> ReadClusterToken(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WIRE_CLUSTER_TOKEN_H_
