#ifndef HOOKE_WIRE_CALLS_CENTER_SOURCE_H_
#define HOOKE_WIRE_CALLS_CENTER_SOURCE_H_

// Where the messages of a job's center come from: the servers that hold its shards (center_pull.h), or a test.

#include <optional>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

class CenterSource {
 public:
  virtual ~CenterSource() = default;

  // Returns the next message of this shard of the center; nullopt after its last one. After an error no more messages
  // come. The error names the server, and says what to do.
  virtual absl::StatusOr<std::optional<v1::PullResponse>> Next(int shard) = 0;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_CENTER_SOURCE_H_
