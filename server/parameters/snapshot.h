#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_

// A shard as bytes, and back. The format is described in docs/snapshot.md, with a worked example. Memory needed is one
// block, both ways.
//
// Used by SnapshotHistory, which knows files and versions.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/storage.h"

namespace hooke {

// Appends a snapshot of `shard` and commits it. Each block is consistent; exchanges go on meanwhile. `sealed`: the job
// has ended.
absl::Status WriteSnapshot(const Shard& shard, bool sealed, StorageWriter& to);

// Reads one snapshot, front to back. DATA_LOSS wherever the bytes are not what was written: the message says at which
// byte, what, and never trusts a length that no checksum covers.
class SnapshotReader {
 public:
  // Reads up to the first block. Takes the reader.
  static absl::StatusOr<SnapshotReader> Open(std::unique_ptr<StorageReader> from);

  const ShardPlan& plan() const { return plan_; }
  uint64_t updates() const { return updates_; }
  bool sealed() const { return sealed_; }
  absl::Time written() const { return from_->written(); }
  const std::vector<uint32_t>& incarnations() const { return incarnations_; }

  // The next block; called plan().blocks.size() times.
  absl::StatusOr<Shard::BlockCopy> ReadBlock();

 private:
  struct Prefix;

  explicit SnapshotReader(std::unique_ptr<StorageReader> from) : from_(std::move(from)) {}

  absl::StatusOr<Prefix> ReadPrefix();
  absl::Status ReadDescription(const Prefix& prefix);
  absl::Status ReadIncarnations();
  // `bytes` bytes and the CRC-32 behind them, which is checked. `what` is for the message.
  absl::StatusOr<std::string> ReadSection(absl::string_view what, uint64_t bytes);

  std::unique_ptr<StorageReader> from_;
  uint64_t offset_ = 0;
  ShardPlan plan_;
  uint64_t updates_ = 0;
  bool sealed_ = false;
  std::vector<uint32_t> incarnations_;
  uint64_t next_block_ = 0;
};

// A shard as the snapshot says, initialized; `clock` as Shard::Create. Reads the snapshot to its end.
absl::StatusOr<std::unique_ptr<Shard>> ReadShard(
    SnapshotReader snapshot, std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

// OK if every byte up to the end of the snapshot is as it was written.
absl::Status VerifySnapshot(SnapshotReader snapshot);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_
