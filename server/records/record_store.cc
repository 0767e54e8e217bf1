#include "server/records/record_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::Status DamagedStore(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(name, " is damaged (", what, "): restore it from a copy, or move it away to start without jobs"));
}

// Keys are ASCII, so the last byte can grow.
std::string EndOfPrefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

absl::Status InMemoryRecordStore::Scan(const std::string& prefix, const Visit& visit) {
  absl::MutexLock lock(&mutex_);
  const auto end = records_.lower_bound(EndOfPrefix(prefix));
  for (auto record = records_.lower_bound(prefix); record != end; ++record) {
    if (absl::Status status = visit(record->first, record->second); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status InMemoryRecordStore::Write(const RecordChanges& changes) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  for (const std::string& prefix : changes.removed) {
    records_.erase(records_.lower_bound(prefix), records_.lower_bound(EndOfPrefix(prefix)));
  }
  for (const auto& [key, value] : changes.put) records_[key] = value;
  puts_ += changes.put.size();
  return absl::OkStatus();
}

void InMemoryRecordStore::FailWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

uint64_t InMemoryRecordStore::puts() const {
  absl::MutexLock lock(&mutex_);
  return puts_;
}

}  // namespace hooke
