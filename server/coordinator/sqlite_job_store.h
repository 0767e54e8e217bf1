#ifndef HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_
#define HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_

// The JobStore of a real coordinator: one SQLite file, in WAL mode with synchronous=FULL, so that what Put has answered
// survives a power cut. The store holds the file's exclusive lock for its life.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/coordinator/job_store.h"

namespace hooke {

// Opens `path`, or creates it; its folder is there. DATA_LOSS: the file is damaged or no job store;
// FAILED_PRECONDITION: another process has it open, or a newer version of Hooke wrote it. Each message names the file
// and what to do.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SQLITE_JOB_STORE_H_
