#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_

// Writes a shard as bytes and reads it back. docs/snapshot.md describes the format, with a worked example. Besides the
// shard, both directions need memory for one block only.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/storage.h"

namespace hooke {

// Appends a snapshot of `shard` and commits it. Each block is consistent; exchanges go on meanwhile. `sealed` says
// whether the job has ended.
absl::Status WriteSnapshot(const Shard& shard, bool sealed, StorageWriter& to);

// Reads one snapshot from front to back. DATA_LOSS: the bytes are not those that were written; the message says what is
// wrong and at which byte. A length is never trusted before its checksum is verified.
class SnapshotReader {
 public:
  // Takes `from` and reads up to the first block.
  static absl::StatusOr<SnapshotReader> Open(std::unique_ptr<StorageReader> from);

  const ShardPlan& plan() const { return plan_; }
  uint64_t updates() const { return updates_; }
  bool sealed() const { return sealed_; }
  absl::Time written() const { return from_->written(); }
  const Shard::Groups& groups() const { return groups_; }

  // Reads the next block. Call it plan().blocks.size() times.
  absl::StatusOr<Shard::BlockCopy> ReadBlock();

 private:
  struct Prefix;

  explicit SnapshotReader(std::unique_ptr<StorageReader> from) : from_(std::move(from)) {}

  absl::StatusOr<Prefix> ReadPrefix();
  absl::Status ReadDescription(const Prefix& prefix);
  absl::Status ReadGroups(const Prefix& prefix);
  // Reads `bytes` bytes and the CRC-32 after them, and checks it. `what` names the section in errors.
  absl::StatusOr<std::string> ReadSection(absl::string_view what, uint64_t bytes);

  std::unique_ptr<StorageReader> from_;
  uint64_t offset_ = 0;
  ShardPlan plan_;
  uint64_t updates_ = 0;
  bool sealed_ = false;
  Shard::Groups groups_;
  uint64_t next_block_ = 0;
};

// Returns the snapshot's shard, which is initialized. Reads the snapshot to its end. `clock` is for Shard::Create.
absl::StatusOr<std::unique_ptr<Shard>> ReadShard(
    SnapshotReader snapshot, std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

// Returns OK if every byte up to the end of the snapshot is as it was written. CANCELLED: `cancelled`, which is asked
// before each block, returned true.
absl::Status VerifySnapshot(SnapshotReader snapshot, absl::FunctionRef<bool()> cancelled);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_H_
