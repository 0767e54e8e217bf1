#ifndef HOOKE_SERVER_COORDINATOR_JOB_STORE_H_
#define HOOKE_SERVER_COORDINATOR_JOB_STORE_H_

// Durable storage of the coordinator's jobs. The Coordinator calls it from one thread at a time, never under its mutex.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/coordinator/records.h"

namespace hooke {

class JobStore {
 public:
  virtual ~JobStore() = default;

  // Returns every job, ordered by number.
  virtual absl::StatusOr<std::vector<JobRecord>> Load() = 0;

  // Writes the whole records of these jobs in one transaction. After OK they are durable; after an error none of them
  // has changed. Writing the same records again changes nothing.
  virtual absl::Status Put(absl::Span<const JobRecord> jobs) = 0;

  // Removes these jobs and keeps their traces, in one transaction with the same guarantees. An unknown job is no error.
  virtual absl::Status Forget(absl::Span<const ForgottenJob> jobs) = 0;

  // Returns the traces of forgotten jobs, ordered by number. The store keeps only the ForgottenJob::kKeptMax traces
  // with the highest numbers.
  virtual absl::StatusOr<std::vector<ForgottenJob>> LoadForgotten() = 0;
};

// A store for tests, which keeps the jobs only in memory. Thread-safe.
class InMemoryJobStore : public JobStore {
 public:
  absl::StatusOr<std::vector<JobRecord>> Load() override;
  absl::Status Put(absl::Span<const JobRecord> jobs) override;
  absl::Status Forget(absl::Span<const ForgottenJob> jobs) override;
  absl::StatusOr<std::vector<ForgottenJob>> LoadForgotten() override;

  // From now on Put and Forget return `status` and write nothing. OK makes them write again.
  void FailWith(absl::Status status);

 private:
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobRecord> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, ForgottenJob> forgotten_ ABSL_GUARDED_BY(mutex_);  // By number.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_STORE_H_
