#include "server/parameters/snapshot_history.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hooke {

SnapshotHistory::SnapshotHistory(Options options, const std::vector<uint64_t>& generations)
    : options_(std::move(options)), generations_(generations), highest_(generations.empty() ? 0 : generations.back()) {
  for (const uint64_t generation : generations) NoteSize(generation);
}

void SnapshotHistory::NoteSize(uint64_t generation) {
  const absl::StatusOr<std::unique_ptr<StorageReader>> file =
      options_.storage->Open(SnapshotName(options_.job_id, generation));
  absl::MutexLock lock(&mutex_);
  bytes_[generation] = file.ok() ? (*file)->size() : 0;
}

uint64_t SnapshotHistory::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [generation, bytes] : bytes_) sum += bytes;
  return sum;
}

absl::Status SnapshotHistory::Write(const Shard& shard, bool sealed) {
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    generation = ++highest_;
  }
  const std::string name = SnapshotName(options_.job_id, generation);
  absl::StatusOr<std::unique_ptr<StorageWriter>> writer = options_.storage->Create(name);
  if (!writer.ok()) return writer.status();
  if (absl::Status status = WriteSnapshot(shard, sealed, **writer); !status.ok()) return status;
  NoteSize(generation);

  std::vector<uint64_t> old;
  {
    absl::MutexLock lock(&mutex_);
    old = std::exchange(bad_, {});
    if (generations_.size() > 1) old.insert(old.end(), generations_.begin(), generations_.end() - 1);
    if (generations_.size() > 1) generations_.erase(generations_.begin(), generations_.end() - 1);
    generations_.push_back(generation);
  }
  for (const uint64_t each : old) {
    const absl::Status status = options_.storage->Remove(SnapshotName(options_.job_id, each));
    if (!status.ok()) {
      options_.logger->warn("old snapshot stays: {}", std::string(status.message()));
      continue;
    }
    absl::MutexLock lock(&mutex_);
    bytes_.erase(each);
  }
  return absl::OkStatus();
}

absl::Status SnapshotHistory::RemoveAll() {
  std::map<uint64_t, uint64_t> files;
  {
    absl::MutexLock lock(&mutex_);
    files = bytes_;
  }
  for (const auto& [generation, bytes] : files) {
    absl::Status status = options_.storage->Remove(SnapshotName(options_.job_id, generation));
    if (!status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    bytes_.erase(generation);
    generations_.erase(std::remove(generations_.begin(), generations_.end(), generation), generations_.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenNewest(absl::FunctionRef<bool()> cancelled) {
  return OpenFirst([this, cancelled](uint64_t generation) -> absl::StatusOr<SnapshotReader> {
    absl::StatusOr<SnapshotReader> checked = Open(generation);
    if (!checked.ok()) return checked.status();
    if (absl::Status status = VerifySnapshot(*std::move(checked), cancelled); !status.ok()) return status;
    return Open(generation);  // Verifying has read the file to its end, so a new reader is needed.
  });
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenNewestUnverified() {
  return OpenFirst([this](uint64_t generation) { return Open(generation); });
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenFirst(
    absl::FunctionRef<absl::StatusOr<SnapshotReader>(uint64_t)> open) {
  std::vector<uint64_t> generations;
  {
    absl::MutexLock lock(&mutex_);
    generations = generations_;
  }
  std::string refused;
  bool all_lost = true;
  for (auto generation = generations.rbegin(); generation != generations.rend(); ++generation) {
    absl::StatusOr<SnapshotReader> snapshot = open(*generation);
    if (snapshot.ok() || absl::IsCancelled(snapshot.status())) return snapshot;
    const std::string name = SnapshotName(options_.job_id, *generation);
    const bool last = std::next(generation) == generations.rend();
    options_.logger->error(
        "snapshot {} in {} refused: {}; {}", name, options_.storage->Describe(),
        std::string(snapshot.status().message()),
        last ? "there is no previous one"
             : absl::StrCat("the previous one, ", SnapshotName(options_.job_id, *std::next(generation)), ", is tried"));
    absl::StrAppend(&refused, refused.empty() ? "" : "; ", name, ": ", snapshot.status().message());
    // Changed bytes stay changed, but another disk error may pass, so that file stays in the list.
    if (snapshot.status().code() != absl::StatusCode::kDataLoss) {
      all_lost = false;
      continue;
    }
    absl::MutexLock lock(&mutex_);
    const auto at = std::find(generations_.begin(), generations_.end(), *generation);
    if (at == generations_.end() || generations_.size() == 1) continue;
    generations_.erase(at);
    bad_.push_back(*generation);
  }
  return absl::Status(
      all_lost ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      absl::StrCat("no readable snapshot of job ", options_.job_id, " in ", options_.storage->Describe(), " (", refused,
                   "); put back a copy of one, or remove these files and run the job anew"));
}

absl::StatusOr<SnapshotReader> SnapshotHistory::Open(uint64_t generation) {
  absl::StatusOr<std::unique_ptr<StorageReader>> file =
      options_.storage->Open(SnapshotName(options_.job_id, generation));
  if (!file.ok()) return file.status();
  absl::StatusOr<SnapshotReader> snapshot = SnapshotReader::Open(*std::move(file));
  if (snapshot.ok() && snapshot->plan().job_id != options_.job_id) {
    return absl::DataLossError(absl::StrCat("it is of job ", snapshot->plan().job_id));
  }
  return snapshot;
}

std::string SnapshotName(absl::string_view job_id, uint64_t generation) {
  return absl::StrFormat("%s.%012d.snapshot", job_id, generation);
}

absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> ListSnapshots(Storage& storage) {
  absl::StatusOr<std::vector<std::string>> names = storage.List();
  if (!names.ok()) return names.status();
  std::map<std::string, std::vector<uint64_t>> found;
  for (const std::string& name : *names) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    uint64_t generation = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &generation) || SnapshotName(parts[0], generation) != name)
      continue;
    if (!CheckJobId(parts[0]).ok()) continue;
    found[parts[0]].push_back(generation);
  }
  for (auto& [job_id, generations] : found) std::sort(generations.begin(), generations.end());
  return found;
}

}  // namespace hooke
