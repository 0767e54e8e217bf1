#include "server/parameters/snapshot_history.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hooke {

SnapshotHistory::SnapshotHistory(Options options, const std::vector<uint64_t>& numbers)
    : options_(std::move(options)), numbers_(numbers), highest_(numbers.empty() ? 0 : numbers.back()) {
  for (const uint64_t number : numbers) NoteSize(number);
}

void SnapshotHistory::NoteSize(uint64_t number) {
  const absl::StatusOr<std::unique_ptr<StorageReader>> file =
      options_.storage->Open(SnapshotName(options_.job_id, number));
  absl::MutexLock lock(&mutex_);
  bytes_[number] = file.ok() ? (*file)->size() : 0;
}

uint64_t SnapshotHistory::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [number, bytes] : bytes_) sum += bytes;
  return sum;
}

absl::Status SnapshotHistory::Write(const Shard& shard, bool sealed) {
  uint64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    number = ++highest_;
  }
  const std::string name = SnapshotName(options_.job_id, number);
  absl::StatusOr<std::unique_ptr<StorageWriter>> writer = options_.storage->Create(name);
  if (!writer.ok()) return writer.status();
  if (absl::Status status = WriteSnapshot(shard, sealed, **writer); !status.ok()) return status;
  NoteSize(number);

  std::vector<uint64_t> old;
  {
    absl::MutexLock lock(&mutex_);
    old = std::exchange(bad_, {});
    if (numbers_.size() > 1) old.insert(old.end(), numbers_.begin(), numbers_.end() - 1);
    if (numbers_.size() > 1) numbers_.erase(numbers_.begin(), numbers_.end() - 1);
    numbers_.push_back(number);
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
  for (const auto& [number, bytes] : files) {
    absl::Status status = options_.storage->Remove(SnapshotName(options_.job_id, number));
    if (!status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    bytes_.erase(number);
    numbers_.erase(std::remove(numbers_.begin(), numbers_.end(), number), numbers_.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenNewest(absl::FunctionRef<bool()> cancelled) {
  return OpenFirst([this, cancelled](uint64_t number) -> absl::StatusOr<SnapshotReader> {
    absl::StatusOr<SnapshotReader> checked = Open(number);
    if (!checked.ok()) return checked.status();
    if (absl::Status status = VerifySnapshot(*std::move(checked), cancelled); !status.ok()) return status;
    return Open(number);  // Verifying has read the file to its end, so a new reader is needed.
  });
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenNewestUnverified() {
  return OpenFirst([this](uint64_t number) { return Open(number); });
}

absl::StatusOr<SnapshotReader> SnapshotHistory::OpenFirst(
    absl::FunctionRef<absl::StatusOr<SnapshotReader>(uint64_t)> open) {
  std::vector<uint64_t> numbers;
  {
    absl::MutexLock lock(&mutex_);
    numbers = numbers_;
  }
  std::string refused;
  bool all_lost = true;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    absl::StatusOr<SnapshotReader> snapshot = open(*number);
    if (snapshot.ok() || absl::IsCancelled(snapshot.status())) return snapshot;
    const std::string name = SnapshotName(options_.job_id, *number);
    const bool last = std::next(number) == numbers.rend();
    options_.logger->error(
        "snapshot {} in {} refused: {}; {}", name, options_.storage->Describe(),
        std::string(snapshot.status().message()),
        last ? "there is no previous one"
             : absl::StrCat("the previous one, ", SnapshotName(options_.job_id, *std::next(number)), ", is tried"));
    absl::StrAppend(&refused, refused.empty() ? "" : "; ", name, ": ", snapshot.status().message());
    // Changed bytes stay changed, but another disk error may pass, so that file stays in the list.
    if (snapshot.status().code() != absl::StatusCode::kDataLoss) {
      all_lost = false;
      continue;
    }
    absl::MutexLock lock(&mutex_);
    const auto at = std::find(numbers_.begin(), numbers_.end(), *number);
    if (at == numbers_.end() || numbers_.size() == 1) continue;
    numbers_.erase(at);
    bad_.push_back(*number);
  }
  return absl::Status(
      all_lost ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      absl::StrCat("no readable snapshot of job ", options_.job_id, " in ", options_.storage->Describe(), " (", refused,
                   "); put back a copy of one, or remove these files and run the job anew"));
}

absl::StatusOr<SnapshotReader> SnapshotHistory::Open(uint64_t number) {
  absl::StatusOr<std::unique_ptr<StorageReader>> file = options_.storage->Open(SnapshotName(options_.job_id, number));
  if (!file.ok()) return file.status();
  absl::StatusOr<SnapshotReader> snapshot = SnapshotReader::Open(*std::move(file));
  if (snapshot.ok() && snapshot->plan().job_id != options_.job_id) {
    return absl::DataLossError(absl::StrCat("it is of job ", snapshot->plan().job_id));
  }
  return snapshot;
}

std::string SnapshotName(absl::string_view job_id, uint64_t number) {
  return absl::StrFormat("%s.%012d.snapshot", job_id, number);
}

absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> ListSnapshots(Storage& storage) {
  absl::StatusOr<std::vector<std::string>> names = storage.List();
  if (!names.ok()) return names.status();
  std::map<std::string, std::vector<uint64_t>> found;
  for (const std::string& name : *names) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    uint64_t number = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &number) || SnapshotName(parts[0], number) != name) continue;
    if (!CheckJobId(parts[0]).ok()) continue;
    found[parts[0]].push_back(number);
  }
  for (auto& [job_id, numbers] : found) std::sort(numbers.begin(), numbers.end());
  return found;
}

}  // namespace hooke
