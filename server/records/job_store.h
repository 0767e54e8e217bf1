#ifndef HOOKE_SERVER_RECORDS_JOB_STORE_H_
#define HOOKE_SERVER_RECORDS_JOB_STORE_H_

// The coordinator's jobs in a RecordStore. The coordinator calls it from one thread at a time, never under its mutex.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/records/record_store.h"
#include "server/records/records.h"

namespace hooke {

struct StoredJobs {
  std::vector<JobRecord> jobs;          // Ordered by number.
  std::vector<ForgottenJob> forgotten;  // Ordered by number.
  std::vector<WorkerDrain> drains;      // Ordered by the workers' names. None is DRAIN_NONE.
  std::vector<OwnerUse> uses;           // Ordered by owner.
};

class JobStore {
 public:
  // Checks the format of the records in `store`, and notes it in an empty store. Only one JobStore may use a store.
  // FAILED_PRECONDITION: a newer version of Hooke wrote the records. DATA_LOSS: they are damaged. Each message names
  // the store and what to do. Other errors are those of the store.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(std::shared_ptr<RecordStore> store);

  // Returns all jobs, the traces of forgotten ones (ForgottenJob), and the drained workers. If more than
  // ForgottenJob::kKeptMax traces are stored, first removes those with the lowest numbers. DATA_LOSS: the message names
  // the store, the damaged record and what to do.
  absl::StatusOr<StoredJobs> Load();

  // In one transaction, stores `jobs`, `drains` and `uses`, and removes the `forgotten` jobs with their histories but
  // keeps their traces. After OK this is durable; after an error none of it has happened. Of a job's records only those
  // are written that differ from the stored ones, and those of groups that it has no more are removed. Forgetting an
  // unknown job is no error.
  absl::Status Write(absl::Span<const JobRecord> jobs, absl::Span<const ForgottenJob> forgotten,
                     absl::Span<const WorkerDrain> drains = {}, absl::Span<const OwnerUse> uses = {});

  // In one transaction, adds or replaces these records, whose keys have HistoryPrefix. Errors are those of the store.
  absl::Status WriteHistory(Records records) { return store_->Write({{}, std::move(records)}); }
  // Returns all records of the job's history, perhaps none. Errors are those of the store.
  absl::StatusOr<Records> ReadHistory(uint64_t number);

 private:
  explicit JobStore(std::shared_ptr<RecordStore> store) : store_(std::move(store)) {}

  absl::Status LoadJobs(std::vector<JobRecord>& jobs);
  absl::Status LoadForgotten(std::vector<ForgottenJob>& forgotten);
  absl::Status LoadDrains(std::vector<WorkerDrain>& drains);
  absl::Status LoadUses(std::vector<OwnerUse>& uses);

  const std::shared_ptr<RecordStore> store_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_JOB_STORE_H_
