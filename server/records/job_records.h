#ifndef HOOKE_SERVER_RECORDS_JOB_RECORDS_H_
#define HOOKE_SERVER_RECORDS_JOB_RECORDS_H_

// Jobs, drained workers and the use of owners as records, and back. Pure functions.
//
//   key                      message of proto/record.proto
//   format                   Format
//   job/NUMBER/group/INDEX   Group
//   job/NUMBER/servers       ServerList
//   job/NUMBER/state         State
//   job/NUMBER/submission    Submission
//   forgotten/NUMBER         ForgottenJob
//   drain/WORKER/            WorkerDrain
//   use/OWNER/               OwnerUse
//   history/NUMBER/...       see server/history/history_records.h
//
// NUMBER is JobRecord.number with 20 digits, and INDEX is GroupRecord.group with 10. So the order of the keys is that
// of the numbers. A group's frequent changes rewrite only the group's own record. Keys not in this table are ignored.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/records/record_store.h"
#include "server/records/records.h"

namespace hooke {

// The format of these records. Formats 1 to 3 were tables of SQLite (old_job_tables.h).
constexpr uint32_t kRecordFormat = 4;

constexpr char kFormatKey[] = "format";
constexpr char kJobsPrefix[] = "job/";
constexpr char kForgottenPrefix[] = "forgotten/";
constexpr char kDrainsPrefix[] = "drain/";
constexpr char kUsesPrefix[] = "use/";
constexpr char kHistoriesPrefix[] = "history/";

// Returns the value of kFormatKey.
std::string FormatRecord();
// FAILED_PRECONDITION: a newer version wrote this value. DATA_LOSS: no version did.
absl::Status CheckFormat(absl::string_view value);

// The prefix of the keys of all records of a job. It has the same length for all jobs.
std::string JobPrefix(uint64_t number);
// Returns whether the key is that of a group of the job.
bool IsGroupKey(uint64_t number, absl::string_view key);
// The prefix of the keys of a job's history. The jobs are loaded without their histories.
std::string HistoryPrefix(uint64_t number);
// Returns all records of the job. They replace all earlier ones but those of groups that it has no more.
Records RecordsOf(const JobRecord& job);
// Returns the job whose records are `records`. There must be at least one. DATA_LOSS: the message names the damaged
// record.
absl::StatusOr<JobRecord> JobFrom(const Records& records);

std::string ForgottenKey(uint64_t number);
std::string ForgottenRecord(const ForgottenJob& job);
// DATA_LOSS: the message names the record.
absl::StatusOr<ForgottenJob> ForgottenFrom(absl::string_view key, absl::string_view value);

// The slash at its end keeps the key of worker "a" from being a prefix of that of "ab".
std::string DrainKey(absl::string_view worker);
std::string DrainRecord(const WorkerDrain& drain);
// DATA_LOSS: the message names the record.
absl::StatusOr<WorkerDrain> DrainFrom(absl::string_view key, absl::string_view value);

// The key, the record and its reading, as for drains above. DATA_LOSS: the message names the record.
std::string UseKey(absl::string_view owner);
std::string UseRecord(const OwnerUse& use);
absl::StatusOr<OwnerUse> UseFrom(absl::string_view key, absl::string_view value);

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_JOB_RECORDS_H_
