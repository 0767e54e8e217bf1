#ifndef HOOKE_SERVER_COORDINATOR_JOB_STORE_H_
#define HOOKE_SERVER_COORDINATOR_JOB_STORE_H_

// Where the coordinator's jobs outlive it. The Coordinator owns the calls: from one thread at a time, never under its
// mutex.

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

  // Every job, by number.
  virtual absl::StatusOr<std::vector<JobRecord>> Load() = 0;

  // Writes these jobs, whole, in one transaction: durable after OK; after an error none of them has changed. Writing
  // the same again changes nothing.
  virtual absl::Status Put(absl::Span<const JobRecord> jobs) = 0;

  // Removes these jobs in one transaction, as durably; those that are not there are no error.
  virtual absl::Status Remove(const std::vector<std::string>& job_ids) = 0;
};

// For tests: as durable as the object. Thread-safe.
class InMemoryJobStore : public JobStore {
 public:
  absl::StatusOr<std::vector<JobRecord>> Load() override;
  absl::Status Put(absl::Span<const JobRecord> jobs) override;
  absl::Status Remove(const std::vector<std::string>& job_ids) override;

  // What the next calls that write answer, instead of writing, until it is OK again.
  void FailWith(absl::Status status);

 private:
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobRecord> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_STORE_H_
