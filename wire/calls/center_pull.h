#ifndef HOOKE_WIRE_CALLS_CENTER_PULL_H_
#define HOOKE_WIRE_CALLS_CENTER_PULL_H_

// Reads a job's center from the servers that hold its shards.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/parameter_server.pb.h"
#include "wire/calls/center_source.h"
#include "wire/cluster_token.h"

namespace hooke {

struct CenterPullOptions {
  std::string job_id;
  std::vector<std::string> servers;            // Addresses of the servers of shards 0, 1, ...
  ClusterToken token = {};                     // Of the cluster; may be empty.
  absl::Duration silence = absl::Seconds(30);  // A server that sends nothing for so long while Next waits has failed.
  // Next asks for it ten times a second, and returns CANCELLED once it is true. May be empty.
  std::function<bool()> stopped = {};
};

// Calls all servers at once. Each sends about 200 KiB before Next asks for them. Use it from one thread.
class CenterPull final : public CenterSource {
 public:
  // Begins the calls.
  explicit CenterPull(CenterPullOptions options);
  // Ends the calls that still run.
  ~CenterPull() override;

  // UNAVAILABLE: the server cannot be reached, or is silent. ABORTED: it has cut the call. CANCELLED: `stopped`. Any
  // other code comes from the server.
  absl::StatusOr<std::optional<v1::PullResponse>> Next(int shard) override;

  void set_silence(absl::Duration silence) { options_.silence = silence; }

 private:
  struct Call;

  // Returns a server's error for people.
  absl::Status Explain(const std::string& address, const absl::Status& status) const;

  CenterPullOptions options_;
  std::vector<std::unique_ptr<Call>> calls_;  // Of each shard; null after its end.
};

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_CENTER_PULL_H_
