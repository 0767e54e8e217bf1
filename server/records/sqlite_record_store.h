#ifndef HOOKE_SERVER_RECORDS_SQLITE_RECORD_STORE_H_
#define HOOKE_SERVER_RECORDS_SQLITE_RECORD_STORE_H_

// The RecordStore of a real coordinator: one table of one SQLite file, in WAL mode with synchronous=FULL. So a record
// survives a power cut once Write has returned OK. The store holds the file's exclusive lock for its life.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/records/record_store.h"

namespace hooke {

// Opens the file `path`, or creates it in its folder, which must exist. The tables of an older version become records,
// in one transaction: after an error they are as they were. DATA_LOSS: the file is damaged or no job store.
// FAILED_PRECONDITION: another process has it open, or a newer version of Hooke wrote it. Each message names the file
// and what to do.
absl::StatusOr<std::unique_ptr<RecordStore>> OpenSqliteRecordStore(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_SQLITE_RECORD_STORE_H_
