#include "server/parameters/in_memory_storage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hooke {

class InMemoryWriter : public StorageWriter {
 public:
  InMemoryWriter(InMemoryStorage* storage, absl::string_view name) : storage_(storage), name_(name) {}

  absl::Status Append(absl::string_view bytes) override {
    absl::MutexLock lock(&storage_->mutex_);
    if (bytes.size() > storage_->free_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", name_, ": No space left on device; free some space there"));
    }
    storage_->free_bytes_ -= bytes.size();
    absl::StrAppend(&bytes_, bytes);
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    absl::MutexLock lock(&storage_->mutex_);
    if (!storage_->commit_status_.ok()) return storage_->commit_status_;
    storage_->files_[name_] = std::move(bytes_);
    storage_->written_ = absl::Now();
    return absl::OkStatus();
  }

 private:
  InMemoryStorage* const storage_;
  const std::string name_;
  std::string bytes_;
};

namespace {

class InMemoryReader : public StorageReader {
 public:
  InMemoryReader(std::string bytes, absl::Time written, std::shared_ptr<std::atomic<uint64_t>> bytes_read)
      : bytes_(std::move(bytes)), written_(written), bytes_read_(std::move(bytes_read)) {}

  uint64_t size() const override { return bytes_.size(); }
  absl::Time written() const override { return written_; }

  absl::StatusOr<std::string> Read(uint64_t bytes) override {
    std::string result = bytes_.substr(offset_, bytes);
    offset_ += result.size();
    *bytes_read_ += result.size();
    return result;
  }

 private:
  const std::string bytes_;
  const absl::Time written_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_read_;
  uint64_t offset_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StorageWriter>> InMemoryStorage::Create(absl::string_view name) {
  if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
  return std::make_unique<InMemoryWriter>(this, name);
}

absl::StatusOr<std::unique_ptr<StorageReader>> InMemoryStorage::Open(absl::string_view name) {
  if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto free = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !held_.has_value() || !absl::StartsWith(name, *held_);
  };
  ++opens_held_;
  mutex_.Await(absl::Condition(&free));
  --opens_held_;
  const auto file = files_.find(name);
  if (file == files_.end()) return absl::NotFoundError(absl::StrCat("cannot open ", name, ": no such file"));
  return std::make_unique<InMemoryReader>(file->second, written_, bytes_read_);
}

void InMemoryStorage::HoldOpens(std::string prefix) {
  absl::MutexLock lock(&mutex_);
  held_ = std::move(prefix);
}

void InMemoryStorage::AwaitHeldOpen() const {
  absl::MutexLock lock(&mutex_);
  const auto held = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return opens_held_ > 0; };
  mutex_.Await(absl::Condition(&held));
}

void InMemoryStorage::ReleaseOpens() {
  absl::MutexLock lock(&mutex_);
  held_.reset();
}

absl::StatusOr<std::vector<std::string>> InMemoryStorage::List() {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files_) names.push_back(name);
  return names;
}

absl::Status InMemoryStorage::Remove(absl::string_view name) {
  if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  if (const auto file = files_.find(name); file != files_.end()) files_.erase(file);
  return absl::OkStatus();
}

std::string InMemoryStorage::Get(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto file = files_.find(name);
  return file == files_.end() ? "" : file->second;
}

void InMemoryStorage::Put(absl::string_view name, std::string bytes) {
  absl::MutexLock lock(&mutex_);
  files_[std::string(name)] = std::move(bytes);
}

void InMemoryStorage::FlipBit(absl::string_view name, uint64_t bit) {
  std::string bytes = Get(name);
  bytes.at(bit / 8) ^= static_cast<char>(1 << (bit % 8));
  Put(name, std::move(bytes));
}

void InMemoryStorage::Truncate(absl::string_view name, uint64_t bytes) { Put(name, Get(name).substr(0, bytes)); }

void InMemoryStorage::SetFreeBytes(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  free_bytes_ = bytes;
}

void InMemoryStorage::FailCommits(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  commit_status_ = std::move(status);
}

}  // namespace hooke
