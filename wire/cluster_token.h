#ifndef HOOKE_WIRE_CLUSTER_TOKEN_H_
#define HOOKE_WIRE_CLUSTER_TOKEN_H_

// The token of a cluster: a secret that all its programs share. Whoever has it may do whatever the cluster can do. No
// function here logs it or puts it into an error.

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// What a caller adds to each call to be admitted (wire/channel.h). Without a secret it adds nothing.
struct CallCredential {
  std::string secret;
  // Empty: the secret is the cluster's token. Otherwise the credential speaks for the ranks of this job only.
  std::string job_id;
};

class ClusterToken {
 public:
  ClusterToken() = default;  // No token: everybody who reaches the cluster may call it.
  explicit ClusterToken(std::string secret) : secret_(std::move(secret)) {}

  bool empty() const { return secret_.empty(); }

  // The credential of a program that holds the token.
  CallCredential ForCalls() const { return {secret_, ""}; }
  // The credential of a job's ranks. It does not tell the token. Without a token it is empty.
  CallCredential ForJob(absl::string_view job_id) const;

  // Whether this token made the credential. The time it takes does not depend on where two secrets differ.
  bool Made(const CallCredential& credential) const;

 private:
  std::string secret_;
};

// Reads a token file: one line of 16 to 4096 printable ASCII characters without spaces. An empty path gives no token.
// NOT_FOUND: there is no such file. PERMISSION_DENIED: it cannot be read, or others than its owner may read or write
// it. INVALID_ARGUMENT: it does not hold a token. The errors name the file and say what to do.
absl::StatusOr<ClusterToken> ReadClusterToken(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WIRE_CLUSTER_TOKEN_H_
