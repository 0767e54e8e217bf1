#ifndef HOOKE_SERVER_JOURNAL_JOURNAL_H_
#define HOOKE_SERVER_JOURNAL_JOURNAL_H_

// Writes batches: jobs into the store, then lines into logs, then profiles into their files, then histories into the
// store. The coordinator's one writer calls it, and nobody else writes to store, logs or profiles.

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/history/history_records.h"
#include "server/journal/job_log.h"
#include "server/journal/profile_store.h"
#include "server/journal/write_queue.h"
#include "server/records/job_store.h"

namespace spdlog {
class logger;
}

namespace hooke {

class Journal {
 public:
  Journal(std::unique_ptr<JobStore> store, std::shared_ptr<JobLog> log, std::shared_ptr<ProfileStore> profiles,
          std::shared_ptr<spdlog::logger> logger);

  struct Result {
    // OK: all changed and forgotten jobs and changed drains are stored. Error: the caller must store all of them again.
    absl::Status changes;
    absl::Status submissions;  // OK: all submissions are stored. Error: none is.
    absl::Status history;      // OK: the histories are stored. Error: the caller must store all of them again.
    // The histories that were asked for, by job.
    std::map<std::string, absl::StatusOr<std::map<SeriesKey, StoredSeries>>> histories;
  };
  // Lines and profiles that cannot be written are lost, and the daemon's log says so. They never keep a job's state
  // from being stored.
  Result Write(const WriteBatch& batch);
  // Returns the stored history of a job. Errors are those of the store. DATA_LOSS: a record is damaged.
  absl::StatusOr<std::map<SeriesKey, StoredSeries>> ReadHistory(const std::string& job_id);

 private:
  absl::Status StoreChanges(const WriteBatch& batch);
  void WriteLogs(const WriteBatch& batch);
  void WriteProfiles(const WriteBatch& batch);
  absl::Status WriteHistories(const WriteBatch& batch);

  const std::unique_ptr<JobStore> store_;
  const std::shared_ptr<JobLog> log_;
  const std::shared_ptr<ProfileStore> profiles_;  // Null: profiles are not kept.
  const std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_JOURNAL_JOURNAL_H_
