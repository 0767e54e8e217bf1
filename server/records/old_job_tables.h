#ifndef HOOKE_SERVER_RECORDS_OLD_JOB_TABLES_H_
#define HOOKE_SERVER_RECORDS_OLD_JOB_TABLES_H_

// The jobs of files that earlier versions wrote, formats 1 to 3. These had tables of jobs, groups and servers, and some
// had one of forgotten jobs. Format 1 knew servers by their address only: their identities are empty. Formats 1 and 2
// knew groups of one worker only, and format 3 has a table for the parts of groups on several.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/records/job_store.h"
#include "server/records/sqlite.h"

namespace hooke {

// Reads all jobs of a file of this format. DATA_LOSS: the message names the file and what is damaged.
absl::StatusOr<StoredJobs> ReadOldJobTables(SqliteDatabase& database, int64_t format);

absl::Status DropOldJobTables(SqliteDatabase& database);

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_OLD_JOB_TABLES_H_
