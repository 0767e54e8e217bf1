#ifndef HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_
#define HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_

// The JobStore of a real coordinator: one SQLite file, in WAL mode with synchronous=FULL. So a job that Put has stored
// survives a power cut. The store holds the file's exclusive lock for its life.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/coordinator/job_store.h"

namespace hooke {

// Opens the file `path`, or creates it in its folder, which must exist. DATA_LOSS: the file is damaged or no job store.
// FAILED_PRECONDITION: another process has it open, or a newer version of Hooke wrote it. Each message names the file
// and what to do.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_
