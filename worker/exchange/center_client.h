#ifndef HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_
#define HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_

// The center as a whole, over all of a job's servers. Rank 0 of a group attaches to the center or creates it, reads it,
// and makes the servers save it. Any rank calls AttachShard when a server has lost its shard. Thread-safe.

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
  // Three fields are unset: the client fills in shard_index and shard_count, and takes job_key from `sender`.
  v1::JobSpecForShard job;
  ModelLayout layout;
  std::optional<v1::ModelDescription> model;             // Stored with the shards that this group creates, for exports.
  Partition partition{0};                                // Partition of layout.values() values.
  std::vector<ServerCalls*> servers;                     // servers[i] holds shard i; they outlive the client.
  absl::Duration call_timeout = absl::Seconds(5);        // Limit for one attempt to attach to one server.
  absl::Duration retry_pause = absl::Milliseconds(250);  // Pause between two attempts.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

struct Attached {
  uint64_t last_sequence = 0;  // The lowest sequence of the servers; the group goes on from there.
  uint32_t window_blocks = 1;  // The smallest window of the servers.
};

v1::Layout LayoutMessage(const ModelLayout& layout, const std::optional<v1::ModelDescription>& model);

class CenterClient {
 public:
  explicit CenterClient(CenterOptions options);

  const std::vector<ServerCalls*>& servers() const { return options_.servers; }
  const v1::JobSpecForShard& job() const { return options_.job; }

  // Attaches to each server in list order. A server that asks for initial values gets those of `vector`. Waits until
  // the deadline for servers that cannot be reached and for other groups that are initializing. DEADLINE_EXCEEDED names
  // the server and its last error. Any other error is final: it comes from a server, a server's answer does not suit
  // this rank, or Stop was called.
  absl::StatusOr<Attached> Attach(absl::Span<const float> vector, absl::Time deadline) const;

  // Like Attach, but for one server. Reads only that shard's values of `vector`.
  absl::StatusOr<Attached> AttachShard(size_t server, absl::Span<const float> vector, absl::Time deadline) const;

  // Attaches to the first server, which may have gone back to a snapshot, but sends no initial values. One attempt.
  absl::Status AttachAgain(absl::Time deadline) const;

  // Reads the center's values into `vector`. FAILED_PRECONDITION: the center has another layout; the message names the
  // first difference. After an error `vector` is unspecified.
  absl::Status Pull(absl::Span<float> vector, absl::Time deadline) const;

  // Writes the center as it was after step `step` of the job's only group. Call it before this start of the group
  // exchanges. Repeatable.
  absl::Status Rewind(uint64_t step, absl::Span<const float> vector, absl::Time deadline) const;

  // What the group has ended with its last exchange: only itself, or the job, which other groups then learn from Pace.
  enum class Ends { kGroup, kJob };
  // Tells every server that the group has made its last exchange, and makes it save its shard. OK: this group's
  // exchange `sequence` is on every server's disk. DATA_LOSS: a server restarted before it saved, and has lost the
  // exchange. `vector` is as in Attach.
  absl::Status Save(uint64_t sequence, Ends ends, absl::Span<const float> vector, absl::Time deadline) const;

  // Tells the first server how fast the group is (0: not measured). The answer has the pace of the fastest group, the
  // fragment that is next, and whether the job is to stop. One attempt.
  absl::StatusOr<v1::PaceResponse> Pace(double steps_per_second, absl::Time deadline) const;

  // Call it when the group has failed. Later calls then end with CANCELLED, except Pace, AttachAgain, and a Pull that
  // gets no message. Calls in progress look for this before each server, each attempt and each message.
  void Stop() { stopped_ = true; }

 private:
  v1::AttachRequest RequestFor(const Cut& cut) const;
  absl::StatusOr<v1::AttachResponse> AttachOnce(size_t server, absl::Span<const float> vector,
                                                absl::Time deadline) const;
  absl::Status PullShard(size_t server, absl::Span<float> vector, absl::Time deadline) const;

  Range ShardOf(size_t server) const { return options_.partition.ShardValues({server, options_.servers.size()}); }
  absl::Status CheckGoing() const;

  const CenterOptions options_;
  const v1::Layout layout_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_CENTER_CLIENT_H_
