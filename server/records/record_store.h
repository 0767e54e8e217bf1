#ifndef HOOKE_SERVER_RECORDS_RECORD_STORE_H_
#define HOOKE_SERVER_RECORDS_RECORD_STORE_H_

// Durable storage of records: bytes under keys. A store knows nothing of jobs, so that another kind of store is a small
// class. JobStore makes the records, and calls a store from one thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace hooke {

// Records by key. Keys are not empty, and ASCII.
using Records = std::map<std::string, std::string, std::less<>>;

struct RecordChanges {
  std::vector<std::string> removed;  // Prefixes: each record whose key begins with one of them is removed.
  Records put;                       // Records to add or to replace, after the removals.
};

class RecordStore {
 public:
  using Visit = std::function<absl::Status(absl::string_view key, absl::string_view value)>;

  virtual ~RecordStore() = default;

  // Calls `visit` with each record whose key begins with `prefix`, which is not empty, in order of keys. Stops at the
  // first error of `visit` and returns it. `visit` must not call the store.
  virtual absl::Status Scan(const std::string& prefix, const Visit& visit) = 0;

  // Makes all changes in one transaction. After OK they are durable; after an error none of them is made. Writing the
  // same changes again changes nothing.
  virtual absl::Status Write(const RecordChanges& changes) = 0;

  // Names the store in messages: "job store /var/lib/hooke/coordinator.db".
  virtual std::string Name() const = 0;
};

// Returns the DATA_LOSS for a store with this name. `what` is damaged.
absl::Status DamagedStore(absl::string_view name, absl::string_view what);

// Returns the first key, in the order of bytes, after all those that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

// A store for tests, which keeps the records only in memory. Thread-safe.
class InMemoryRecordStore : public RecordStore {
 public:
  absl::Status Scan(const std::string& prefix, const Visit& visit) override;
  absl::Status Write(const RecordChanges& changes) override;
  std::string Name() const override { return "job store in memory"; }

  // From now on Write returns `status` and writes nothing. OK makes it write again.
  void FailWith(absl::Status status);
  // Returns how many records were put so far.
  uint64_t puts() const;

 private:
  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Records records_ ABSL_GUARDED_BY(mutex_);
  uint64_t puts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_RECORD_STORE_H_
