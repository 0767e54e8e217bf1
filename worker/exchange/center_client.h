#ifndef HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_
#define HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_

// The center as a whole, over all of a job's servers: attach to it (or create it), read it. Used by rank 0 of a group;
// the exchange client of any rank uses AttachShard when a server has lost its shard. Thread-safe.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/server_calls.h"
#include "worker/model/model_layout.h"

namespace hooke {

struct CenterOptions {
  v1::Sender sender;
  v1::JobSpecForShard job;  // Without shard_index and shard_count.
  ModelLayout layout;
  std::optional<v1::ModelDescription> model;  // Kept with the shards that this group creates, for whoever exports them.
  Partition partition{0};                     // Of layout.values() values.
  std::vector<ServerCalls*> servers;          // Of shard 0, 1, ...; they outlive the client.
  absl::Duration call_timeout = absl::Seconds(5);        // Of asking one server once.
  absl::Duration retry_pause = absl::Milliseconds(250);  // Between two attempts.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

struct Attached {
  uint64_t last_sequence = 0;  // Lowest over the servers: the group goes on from there.
  uint32_t window_blocks = 1;  // Lowest over the servers.
};

v1::Layout LayoutMessage(const ModelLayout& layout, const std::optional<v1::ModelDescription>& model);

class CenterClient {
 public:
  explicit CenterClient(CenterOptions options);

  const std::vector<ServerCalls*>& servers() const { return options_.servers; }

  // Attaches on each server in list order; where the server asks for initial values, sends those of `vector`. Waits for
  // servers that cannot be reached and for other groups that are initializing, until the deadline: DEADLINE_EXCEEDED,
  // naming the server and what it last said. Any other error is the server's and final.
  absl::StatusOr<Attached> Attach(absl::Span<const float> vector, absl::Time deadline) const;

  // The same for one server. Reads only that shard's values of `vector`.
  absl::StatusOr<Attached> AttachShard(size_t server, absl::Span<const float> vector, absl::Time deadline) const;

  // Reads the center's values into `vector`. FAILED_PRECONDITION: a center with another layout, naming the first
  // difference. After an error `vector` is unspecified.
  absl::Status Pull(absl::Span<float> vector, absl::Time deadline) const;

  // OK: every server has this group's exchange `sequence` on its disk. DATA_LOSS: a server has lost it, started again
  // before it could save. `vector` as in Attach.
  absl::Status Save(uint64_t sequence, absl::Span<const float> vector, absl::Time deadline) const;

  // Tells the first server how fast the group is (0: not measured), and asks it what a group should know before an
  // exchange. One attempt.
  absl::StatusOr<v1::PaceResponse> Pace(double steps_per_second, absl::Time deadline) const;

  // For a group that has failed: calls in progress, and all later ones, end with CANCELLED at a server's next answer or
  // the next pause.
  void Stop() { stopped_ = true; }

 private:
  absl::StatusOr<v1::AttachResponse> AttachOnce(size_t server, absl::Span<const float> vector,
                                                absl::Time deadline) const;
  absl::Status PullShard(size_t server, absl::Span<float> vector, absl::Time deadline) const;

  absl::Status CheckGoing() const;

  const CenterOptions options_;
  const v1::Layout layout_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_
