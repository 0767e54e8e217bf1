#include "server/parameters/snapshot.h"

#include <zlib.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/finite.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Snapshots and messages hold little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

constexpr absl::string_view kMagic("hookesn\n", 8);
constexpr uint32_t kVersion = 4;
constexpr uint32_t kWithoutSuccessor = 3;  // Its section of the groups ends with `stop`.
constexpr uint32_t kOldestVersion = 2;     // Its section of the groups has only their incarnations.
constexpr uint64_t kPrefixBytes = 44;
constexpr uint64_t kChecksumBytes = 4;
constexpr uint64_t kExchangeIdBytes = 12;
constexpr uint64_t kBlockVersionBytes = 8;

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename T>
void Put(std::string* to, T number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Removes a number from the front of `from` and returns it. `from` must be long enough.
template <typename T>
T Take(absl::string_view* from) {
  T number;
  std::memcpy(&number, from->data(), sizeof(number));
  from->remove_prefix(sizeof(number));
  return number;
}

absl::Status AppendSection(std::string bytes, StorageWriter& to) {
  Put(&bytes, Checksum(bytes));
  return to.Append(bytes);
}

uint64_t BlockBytes(const ShardPlan& plan, uint64_t values) {
  return kExchangeIdBytes * plan.job.groups() + kBlockVersionBytes +
         4 * values * (1 + uint64_t{plan.rule.traits.state_values});
}

uint64_t GroupsBytes(const ShardPlan& plan, uint32_t version) {
  const uint64_t groups = plan.job.groups();
  if (version == kOldestVersion) return 4 * groups;
  return 8 * groups + (version == kWithoutSuccessor ? 4 : 8);
}

uint64_t FileBytes(const ShardPlan& plan, uint64_t description_bytes, uint32_t version) {
  return kPrefixBytes + kChecksumBytes + description_bytes + kChecksumBytes + GroupsBytes(plan, version) +
         kChecksumBytes + plan.blocks.size() * (BlockBytes(plan, 0) + kChecksumBytes) +
         4 * plan.partition.Values(plan.blocks).size() * (1 + uint64_t{plan.rule.traits.state_values});
}

// Returns a serialized AttachRequest for this shard, which has everything constant about it. PlanShard makes the plan
// from it again.
std::string Description(const ShardPlan& plan) {
  v1::AttachRequest request;
  request.mutable_sender()->set_job_id(plan.job_id);
  *request.mutable_job() = plan.job;
  *request.mutable_layout() = plan.layout;
  return request.SerializeAsString();
}

std::string EncodeGroups(const Shard::Groups& groups) {
  std::string bytes;
  for (const uint32_t incarnation : groups.incarnations) Put(&bytes, incarnation);
  for (const uint32_t incarnation : groups.ended) Put(&bytes, incarnation);
  Put(&bytes, uint32_t{groups.stop});
  Put(&bytes, groups.successor);
  return bytes;
}

std::string EncodeBlock(const Shard::BlockCopy& copy) {
  std::string bytes;
  bytes.reserve(kExchangeIdBytes * copy.applied.size() + kBlockVersionBytes +
                4 * (copy.values.size() + copy.state.size()) + kChecksumBytes);
  for (const ExchangeId& id : copy.applied) {
    Put(&bytes, id.incarnation);
    Put(&bytes, id.sequence);
  }
  Put(&bytes, copy.updates);
  bytes.append(reinterpret_cast<const char*>(copy.values.data()), 4 * copy.values.size());
  bytes.append(reinterpret_cast<const char*>(copy.state.data()), 4 * copy.state.size());
  return bytes;
}

}  // namespace

struct SnapshotReader::Prefix {
  uint32_t version = kVersion;
  uint32_t description_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t block_values = 0;
};

absl::Status WriteSnapshot(const Shard& shard, bool sealed, StorageWriter& to) {
  const ShardPlan& plan = shard.plan();
  const std::string description = Description(plan);
  std::string prefix(kMagic);
  Put(&prefix, kVersion);
  Put(&prefix, static_cast<uint32_t>(description.size()));
  Put(&prefix, FileBytes(plan, description.size(), kVersion));
  Put(&prefix, plan.partition.block_values());
  // The count is read before the blocks are copied, so that changes during the copy make the next snapshot due.
  Put(&prefix, shard.updates());
  Put(&prefix, uint32_t{sealed});
  if (absl::Status status = AppendSection(std::move(prefix), to); !status.ok()) return status;
  if (absl::Status status = AppendSection(description, to); !status.ok()) return status;
  if (absl::Status status = AppendSection(EncodeGroups(shard.CopyGroups()), to); !status.ok()) return status;
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    if (absl::Status status = AppendSection(EncodeBlock(shard.CopyBlock(block)), to); !status.ok()) return status;
  }
  return to.Commit();
}

absl::StatusOr<SnapshotReader> SnapshotReader::Open(std::unique_ptr<StorageReader> from) {
  SnapshotReader reader(std::move(from));
  absl::StatusOr<Prefix> prefix = reader.ReadPrefix();
  if (!prefix.ok()) return prefix.status();
  if (absl::Status status = reader.ReadDescription(*prefix); !status.ok()) return status;
  if (absl::Status status = reader.ReadGroups(*prefix); !status.ok()) return status;
  return reader;
}

absl::StatusOr<SnapshotReader::Prefix> SnapshotReader::ReadPrefix() {
  absl::StatusOr<std::string> section = ReadSection("the prefix", kPrefixBytes);
  if (!section.ok()) return section.status();
  absl::string_view rest = *section;
  if (rest.substr(0, kMagic.size()) != kMagic) return absl::DataLossError("at byte 0: this is no snapshot of Hooke's");
  rest.remove_prefix(kMagic.size());
  Prefix prefix;
  prefix.version = Take<uint32_t>(&rest);
  if (prefix.version < kOldestVersion || prefix.version > kVersion) {
    return absl::DataLossError(absl::StrCat("at byte 8: format version ", prefix.version, "; this program reads ",
                                            kOldestVersion, " to ", kVersion,
                                            ": finish or export the job with the program that wrote it"));
  }
  prefix.description_bytes = Take<uint32_t>(&rest);
  prefix.file_bytes = Take<uint64_t>(&rest);
  prefix.block_values = Take<uint64_t>(&rest);
  updates_ = Take<uint64_t>(&rest);
  const uint32_t sealed = Take<uint32_t>(&rest);
  if (sealed > 1) {
    return absl::DataLossError(
        absl::StrCat("at byte 40: sealed is ", sealed, "; 0 and 1 are allowed: no server wrote this"));
  }
  sealed_ = sealed == 1;
  if (prefix.file_bytes != from_->size()) {
    return absl::DataLossError(
        absl::StrCat("cut short or grown: ", from_->size(), " bytes instead of ", prefix.file_bytes));
  }
  if (prefix.block_values == 0) return absl::DataLossError("at byte 24: blocks of no values");
  return prefix;
}

absl::Status SnapshotReader::ReadDescription(const Prefix& prefix) {
  const uint64_t start = offset_;
  absl::StatusOr<std::string> section = ReadSection("the description", prefix.description_bytes);
  if (!section.ok()) return section.status();
  v1::AttachRequest request;
  if (!request.ParseFromString(*section))
    return absl::DataLossError(absl::StrCat("at byte ", start, ": the description is no message"));
  absl::StatusOr<ShardPlan> plan = PlanShard(request, prefix.block_values);
  if (!plan.ok())
    return absl::DataLossError(
        absl::StrCat("at byte ", start, ": the description is wrong: ", plan.status().message()));
  // This check comes before anything is read or allocated with the plan's numbers.
  if (FileBytes(*plan, prefix.description_bytes, prefix.version) != prefix.file_bytes) {
    return absl::DataLossError(
        absl::StrCat("at byte ", start, ": the description does not fit the file's ", prefix.file_bytes, " bytes"));
  }
  plan_ = *std::move(plan);
  return absl::OkStatus();
}

absl::Status SnapshotReader::ReadGroups(const Prefix& prefix) {
  const uint64_t start = offset_;
  absl::StatusOr<std::string> section = ReadSection("the groups", GroupsBytes(plan_, prefix.version));
  if (!section.ok()) return section.status();
  absl::string_view rest = *section;
  const uint32_t groups = plan_.job.groups();
  for (uint32_t group = 0; group < groups; ++group) groups_.incarnations.push_back(Take<uint32_t>(&rest));
  groups_.ended.resize(groups);
  if (rest.empty()) return absl::OkStatus();
  for (uint32_t& ended : groups_.ended) ended = Take<uint32_t>(&rest);
  const uint32_t stop = Take<uint32_t>(&rest);
  if (stop > 1) {
    return absl::DataLossError(absl::StrCat("at byte ", start + 8 * uint64_t{groups}, ": stop is ", stop,
                                            "; 0 and 1 are allowed: no server wrote this"));
  }
  groups_.stop = stop == 1;
  if (!rest.empty()) groups_.successor = Take<uint32_t>(&rest);
  return absl::OkStatus();
}

absl::StatusOr<Shard::BlockCopy> SnapshotReader::ReadBlock() {
  if (next_block_ >= plan_.blocks.size()) return absl::OutOfRangeError("the snapshot has no more blocks");
  const uint64_t values = plan_.BlockRange(plan_.blocks.begin + next_block_).size();
  absl::StatusOr<std::string> section = ReadSection(absl::StrCat("block ", next_block_), BlockBytes(plan_, values));
  if (!section.ok()) return section.status();
  ++next_block_;
  Shard::BlockCopy copy;
  absl::string_view rest = *section;
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
    ExchangeId id;
    id.incarnation = Take<uint32_t>(&rest);
    id.sequence = Take<uint64_t>(&rest);
    copy.applied.push_back(id);
  }
  copy.updates = Take<uint64_t>(&rest);
  copy.values.resize(values);
  std::memcpy(copy.values.data(), rest.data(), 4 * values);
  rest.remove_prefix(4 * values);
  copy.state.resize(rest.size() / 4);
  if (!rest.empty()) std::memcpy(copy.state.data(), rest.data(), rest.size());
  if (!AllFinite(copy.values) || !AllFinite(copy.state)) {
    return absl::DataLossError(absl::StrCat("block ", next_block_ - 1,
                                            " has a value that is infinite or not a number: no server writes such"));
  }
  return copy;
}

absl::StatusOr<std::string> SnapshotReader::ReadSection(absl::string_view what, uint64_t bytes) {
  absl::StatusOr<std::string> section = from_->Read(bytes + kChecksumBytes);
  if (!section.ok()) return section.status();
  if (section->size() < bytes + kChecksumBytes) {
    return absl::DataLossError(absl::StrCat("cut short at byte ", offset_ + section->size(), ", in ", what));
  }
  absl::string_view stored = absl::string_view(*section).substr(bytes);
  const uint32_t expected = Take<uint32_t>(&stored);
  section->resize(bytes);
  const uint32_t found = Checksum(*section);
  if (found != expected) {
    return absl::DataLossError(absl::StrFormat(
        "checksum of %s at byte %d is %08x instead of %08x: its bytes have changed", what, offset_, found, expected));
  }
  offset_ += bytes + kChecksumBytes;
  return section;
}

absl::StatusOr<std::unique_ptr<Shard>> ReadShard(SnapshotReader snapshot, std::shared_ptr<WaitClock> clock) {
  absl::StatusOr<std::unique_ptr<Shard>> shard = Shard::Create(snapshot.plan(), std::move(clock));
  if (!shard.ok()) return shard.status();
  for (uint64_t block = 0; block < (*shard)->blocks(); ++block) {
    absl::StatusOr<Shard::BlockCopy> copy = snapshot.ReadBlock();
    if (!copy.ok()) return copy.status();
    (*shard)->RestoreBlock(block, *std::move(copy));
  }
  (*shard)->RestoreState(snapshot.groups(), snapshot.updates());
  return shard;
}

absl::Status VerifySnapshot(SnapshotReader snapshot, absl::FunctionRef<bool()> cancelled) {
  for (uint64_t block = 0; block < snapshot.plan().blocks.size(); ++block) {
    if (cancelled()) return absl::CancelledError("the check of the snapshot was cancelled");
    if (absl::Status status = snapshot.ReadBlock().status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
