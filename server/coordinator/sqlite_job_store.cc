#include "server/coordinator/sqlite_job_store.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/coordinator/sqlite.h"

namespace hooke {
namespace {

// "Hook" in ASCII. It marks our files, so that another program's database is not taken for one.
constexpr int64_t kApplicationId = 0x486f6f6b;
constexpr int64_t kSchemaVersion = 3;

constexpr char kSchema[] = R"sql(
CREATE TABLE jobs (
  job_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,
  submission_id TEXT NOT NULL UNIQUE,
  spec BLOB NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  submitted_unix_ms INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL,
  first_step_unix_ms INTEGER NOT NULL,
  ended_unix_ms INTEGER NOT NULL,
  center BLOB
);
CREATE TABLE job_groups (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  group_index INTEGER NOT NULL,
  task INTEGER NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  worker TEXT NOT NULL,
  site TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  last_event INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  best_step INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  PRIMARY KEY (job_id, group_index)
) WITHOUT ROWID;
CREATE TABLE job_servers (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  shard INTEGER NOT NULL,
  address TEXT NOT NULL,
  server_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (job_id, shard)
) WITHOUT ROWID;
)sql";

// Format 1 knew servers by their address only. Its jobs get the identity of the server that is reached there.
constexpr char kFrom1To2[] = "ALTER TABLE job_servers ADD COLUMN server_id TEXT NOT NULL DEFAULT ''; ";
// Format 2 knew groups of one worker only. This table has all parts of the groups that run on several. The columns
// `worker` and `last_event` of job_groups are those of a group's first part.
constexpr char kPartsSchema[] = R"sql(
CREATE TABLE group_parts (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  group_index INTEGER NOT NULL,
  part INTEGER NOT NULL,
  worker TEXT NOT NULL,
  first_rank INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  address TEXT NOT NULL,
  last_event INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (job_id, group_index, part)
) WITHOUT ROWID;
)sql";
// This table is not in kSchema, because stores of earlier versions do not have it. Earlier versions ignore the table,
// so the format's number stays the same.
constexpr char kForgottenSchema[] = R"sql(
CREATE TABLE IF NOT EXISTS forgotten_jobs (
  number INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  job_key TEXT NOT NULL
);
)sql";

constexpr char kPutJob[] =
    "INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (job_id) DO UPDATE SET state = "
    "?5, "
    "reason = ?6, started_unix_ms = ?8, first_step_unix_ms = ?9, ended_unix_ms = ?10, center = ?11";
constexpr char kPutGroup[] =
    "INSERT OR REPLACE INTO job_groups VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
constexpr char kRemoveParts[] = "DELETE FROM group_parts WHERE job_id = ?1 AND group_index = ?2";
constexpr char kPutPart[] = "INSERT INTO group_parts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
constexpr char kPutServer[] = "INSERT OR REPLACE INTO job_servers VALUES (?1, ?2, ?3, ?4)";
// The row in `jobs` goes last, because the others refer to it.
constexpr const char* kRemove[] = {"DELETE FROM group_parts WHERE job_id = ?1",
                                   "DELETE FROM job_groups WHERE job_id = ?1",
                                   "DELETE FROM job_servers WHERE job_id = ?1", "DELETE FROM jobs WHERE job_id = ?1"};
constexpr char kPutForgotten[] = "INSERT OR REPLACE INTO forgotten_jobs VALUES (?1, ?2, ?3)";
constexpr char kTrimForgotten[] =
    "DELETE FROM forgotten_jobs WHERE number NOT IN (SELECT number FROM forgotten_jobs ORDER BY number DESC LIMIT ";
constexpr char kLoadForgotten[] = "SELECT number, job_id, job_key FROM forgotten_jobs ORDER BY number";
constexpr char kLoadJobs[] =
    "SELECT job_id, number, submission_id, spec, state, reason, submitted_unix_ms, started_unix_ms, "
    "first_step_unix_ms, "
    "ended_unix_ms, center FROM jobs ORDER BY number";
constexpr char kLoadGroups[] =
    "SELECT group_index, task, state, reason, worker, site, incarnation, last_event, failures, best_step, evaluated "
    "FROM job_groups WHERE job_id = ?1 ORDER BY group_index";
constexpr char kLoadParts[] =
    "SELECT group_index, worker, first_rank, ranks, address, last_event, ended FROM group_parts WHERE job_id = ?1 "
    "ORDER BY group_index, part";
constexpr char kLoadServers[] = "SELECT address, server_id FROM job_servers WHERE job_id = ?1 ORDER BY shard";

class SqliteJobStore : public JobStore {
 public:
  explicit SqliteJobStore(std::unique_ptr<SqliteDatabase> database) : database_(std::move(database)) {}

  absl::Status Prepare();
  absl::StatusOr<std::vector<JobRecord>> Load() override;
  absl::Status Put(absl::Span<const JobRecord> jobs) override;
  absl::Status Forget(absl::Span<const ForgottenJob> jobs) override;
  absl::StatusOr<std::vector<ForgottenJob>> LoadForgotten() override;

 private:
  absl::Status InTransaction(const std::function<absl::Status()>& write);
  absl::Status PutJob(const JobRecord& job);
  absl::Status PutParts(const JobRecord& job, const GroupRecord& group);
  absl::StatusOr<JobRecord> ReadJob();
  absl::Status ReadGroups(JobRecord& job);
  absl::Status ReadParts(JobRecord& job);
  absl::Status ReadServers(JobRecord& job);
  absl::Status Damaged(const std::string& job_id, const char* what) const;

  const std::unique_ptr<SqliteDatabase> database_;
  std::unique_ptr<SqliteStatement> put_job_, put_group_, put_part_, put_server_, put_forgotten_, remove_parts_;
  std::unique_ptr<SqliteStatement> load_jobs_, load_groups_, load_parts_, load_servers_, load_forgotten_;
  std::array<std::unique_ptr<SqliteStatement>, 4> remove_;  // Prepared from kRemove.
};

absl::Status SqliteJobStore::Prepare() {
  if (absl::Status status = database_->Execute(kForgottenSchema); !status.ok()) return status;
  const std::pair<std::unique_ptr<SqliteStatement>*, const char*> statements[] = {
      {&put_job_, kPutJob},           {&put_group_, kPutGroup},
      {&put_server_, kPutServer},     {&put_forgotten_, kPutForgotten},
      {&load_jobs_, kLoadJobs},       {&load_groups_, kLoadGroups},
      {&load_servers_, kLoadServers}, {&load_forgotten_, kLoadForgotten},
      {&put_part_, kPutPart},         {&remove_parts_, kRemoveParts},
      {&load_parts_, kLoadParts},     {&remove_[0], kRemove[0]},
      {&remove_[1], kRemove[1]},      {&remove_[2], kRemove[2]},
      {&remove_[3], kRemove[3]}};
  for (auto& [statement, sql] : statements) {
    absl::StatusOr<std::unique_ptr<SqliteStatement>> prepared = database_->Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status SqliteJobStore::Put(absl::Span<const JobRecord> jobs) {
  return InTransaction([&] {
    for (const JobRecord& job : jobs) {
      if (absl::Status status = PutJob(job); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

absl::Status SqliteJobStore::Forget(absl::Span<const ForgottenJob> jobs) {
  return InTransaction([&] {
    for (const ForgottenJob& job : jobs) {
      for (std::unique_ptr<SqliteStatement>& statement : remove_) {
        statement->BindText(1, job.job_id);
        if (absl::Status status = statement->Run(); !status.ok()) return status;
      }
      put_forgotten_->Bind(1, job.number).BindText(2, job.job_id).BindText(3, job.job_key);
      if (absl::Status status = put_forgotten_->Run(); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<ForgottenJob>> SqliteJobStore::LoadForgotten() {
  absl::Status trimmed = database_->Execute(absl::StrCat(kTrimForgotten, ForgottenJob::kKeptMax, ")"));
  if (!trimmed.ok()) return trimmed;
  std::vector<ForgottenJob> forgotten;
  absl::StatusOr<bool> row = load_forgotten_->Step();
  for (; row.ok() && *row; row = load_forgotten_->Step()) {
    ForgottenJob job;
    job.number = load_forgotten_->Int(0);
    job.job_id = load_forgotten_->Bytes(1);
    job.job_key = load_forgotten_->Bytes(2);
    forgotten.push_back(std::move(job));
  }
  load_forgotten_->Reset();
  if (!row.ok()) return row.status();
  return forgotten;
}

absl::Status SqliteJobStore::InTransaction(const std::function<absl::Status()>& write) {
  absl::Status status = database_->Execute("BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  status = write();
  if (status.ok()) status = database_->Execute("COMMIT");
  // SQLite may have rolled back by itself. Then this ROLLBACK fails and changes nothing.
  if (!status.ok()) (void)database_->Execute("ROLLBACK");
  return status;
}

absl::Status SqliteJobStore::PutJob(const JobRecord& job) {
  put_job_->BindText(1, job.job_id).Bind(2, job.number).BindText(3, job.submission_id);
  put_job_->BindBlob(4, job.spec.SerializeAsString()).Bind(5, job.state).BindText(6, job.reason);
  put_job_->Bind(7, job.submitted_unix_ms).Bind(8, job.started_unix_ms).Bind(9, job.first_step_unix_ms);
  put_job_->Bind(10, job.ended_unix_ms);
  if (job.center.has_value()) {
    put_job_->BindBlob(11, job.center->SerializeAsString());
  } else {
    put_job_->BindNull(11);
  }
  absl::Status status = put_job_->Run();
  for (size_t i = 0; status.ok() && i < job.groups.size(); ++i) {
    const GroupRecord& group = job.groups[i];
    put_group_->BindText(1, job.job_id).Bind(2, group.group).Bind(3, group.task).Bind(4, group.state);
    const GroupPart first = group.parts.empty() ? GroupPart() : group.parts[0];
    put_group_->BindText(5, group.reason).BindText(6, first.worker).BindText(7, group.site).Bind(8, group.incarnation);
    put_group_->Bind(9, first.last_event).Bind(10, group.failures).Bind(11, group.best_step).Bind(12, group.evaluated);
    status = put_group_->Run();
    if (status.ok()) status = PutParts(job, group);
  }
  for (size_t i = 0; status.ok() && i < job.servers.size(); ++i) {
    put_server_->BindText(1, job.job_id).Bind(2, i).BindText(3, job.servers[i].address);
    put_server_->BindText(4, job.servers[i].id);
    status = put_server_->Run();
  }
  return status;
}

absl::Status SqliteJobStore::PutParts(const JobRecord& job, const GroupRecord& group) {
  remove_parts_->BindText(1, job.job_id).Bind(2, group.group);
  absl::Status status = remove_parts_->Run();
  if (group.parts.size() < 2) return status;
  for (size_t i = 0; status.ok() && i < group.parts.size(); ++i) {
    const GroupPart& part = group.parts[i];
    put_part_->BindText(1, job.job_id).Bind(2, group.group).Bind(3, i).BindText(4, part.worker);
    put_part_->Bind(5, part.first_rank).Bind(6, part.ranks).BindText(7, part.address);
    put_part_->Bind(8, part.last_event).Bind(9, part.ended);
    status = put_part_->Run();
  }
  return status;
}

absl::StatusOr<std::vector<JobRecord>> SqliteJobStore::Load() {
  std::vector<JobRecord> jobs;
  absl::StatusOr<bool> row = load_jobs_->Step();
  for (; row.ok() && *row; row = load_jobs_->Step()) {
    absl::StatusOr<JobRecord> job = ReadJob();
    if (!job.ok()) {
      load_jobs_->Reset();
      return job.status();
    }
    jobs.push_back(*std::move(job));
  }
  load_jobs_->Reset();
  if (!row.ok()) return row.status();
  for (JobRecord& job : jobs) {
    absl::Status status = ReadGroups(job);
    if (status.ok()) status = ReadParts(job);
    if (status.ok()) status = ReadServers(job);
    if (!status.ok()) return status;
  }
  return jobs;
}

absl::StatusOr<JobRecord> SqliteJobStore::ReadJob() {
  JobRecord job;
  job.job_id = load_jobs_->Bytes(0);
  job.number = load_jobs_->Int(1);
  job.submission_id = load_jobs_->Bytes(2);
  if (!job.spec.ParseFromString(load_jobs_->Bytes(3))) return Damaged(job.job_id, "its spec");
  if (!v1::JobState_IsValid(load_jobs_->Int(4))) return Damaged(job.job_id, "its state");
  job.state = static_cast<v1::JobState>(load_jobs_->Int(4));
  job.reason = load_jobs_->Bytes(5);
  job.submitted_unix_ms = load_jobs_->Int(6);
  job.started_unix_ms = load_jobs_->Int(7);
  job.first_step_unix_ms = load_jobs_->Int(8);
  job.ended_unix_ms = load_jobs_->Int(9);
  if (!load_jobs_->IsNull(10) && !job.center.emplace().ParseFromString(load_jobs_->Bytes(10))) {
    return Damaged(job.job_id, "its accuracy");
  }
  return job;
}

absl::Status SqliteJobStore::ReadGroups(JobRecord& job) {
  load_groups_->BindText(1, job.job_id);
  absl::StatusOr<bool> row = load_groups_->Step();
  bool valid = true;
  for (; row.ok() && *row; row = load_groups_->Step()) {
    GroupRecord group;
    group.group = load_groups_->Int(0);
    valid = valid && group.group == job.groups.size() && v1::GroupStart::Task_IsValid(load_groups_->Int(1)) &&
            v1::GroupState_IsValid(load_groups_->Int(2));
    group.task = static_cast<v1::GroupStart::Task>(load_groups_->Int(1));
    group.state = static_cast<v1::GroupState>(load_groups_->Int(2));
    group.reason = load_groups_->Bytes(3);
    GroupPart part;
    part.worker = load_groups_->Bytes(4);
    part.ranks = job.spec.groups().ranks();
    part.last_event = load_groups_->Int(7);
    if (!part.worker.empty()) group.parts.push_back(std::move(part));
    group.site = load_groups_->Bytes(5);
    group.incarnation = load_groups_->Int(6);
    group.failures = load_groups_->Int(8);
    group.best_step = load_groups_->Int(9);
    group.evaluated = load_groups_->Int(10) != 0;
    job.groups.push_back(std::move(group));
  }
  load_groups_->Reset();
  if (!row.ok()) return row.status();
  return valid ? absl::OkStatus() : Damaged(job.job_id, "its groups");
}

// Reads the parts of the job's groups that run on several workers. ReadGroups has given each of these groups a single
// part, which this function replaces.
absl::Status SqliteJobStore::ReadParts(JobRecord& job) {
  load_parts_->BindText(1, job.job_id);
  std::map<uint32_t, std::vector<GroupPart>> parts;
  absl::StatusOr<bool> row = load_parts_->Step();
  for (; row.ok() && *row; row = load_parts_->Step()) {
    GroupPart part;
    part.worker = load_parts_->Bytes(1);
    part.first_rank = load_parts_->Int(2);
    part.ranks = load_parts_->Int(3);
    part.address = load_parts_->Bytes(4);
    part.last_event = load_parts_->Int(5);
    part.ended = load_parts_->Int(6) != 0;
    parts[load_parts_->Int(0)].push_back(std::move(part));
  }
  load_parts_->Reset();
  if (!row.ok()) return row.status();
  for (auto& [group, of_group] : parts) {
    if (group >= job.groups.size()) return Damaged(job.job_id, "its groups' parts");
    job.groups[group].parts = std::move(of_group);
  }
  return absl::OkStatus();
}

absl::Status SqliteJobStore::ReadServers(JobRecord& job) {
  load_servers_->BindText(1, job.job_id);
  absl::StatusOr<bool> row = load_servers_->Step();
  for (; row.ok() && *row; row = load_servers_->Step()) {
    job.servers.push_back({load_servers_->Bytes(1), load_servers_->Bytes(0)});
  }
  load_servers_->Reset();
  return row.status();
}

absl::Status SqliteJobStore::Damaged(const std::string& job_id, const char* what) const {
  return absl::DataLossError(absl::StrCat("job store ", database_->path(), " is damaged (job ", job_id, ": ", what,
                                          "): restore it from a copy, or move it away to start without jobs"));
}

// Locks the file, sets SQLite's options, and begins a transaction. It takes the exclusive lock before the schema is
// read, so that nobody else can change the file afterwards.
absl::Status LockAndSetUp(SqliteDatabase& database) {
  for (const char* sql : {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
                          "PRAGMA foreign_keys = ON", "BEGIN IMMEDIATE"}) {
    absl::Status status = database.Execute(sql);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Creates, checks or upgrades the schema, and ends the transaction that LockAndSetUp began.
absl::Status CheckOrCreateSchema(SqliteDatabase& database) {
  absl::StatusOr<int64_t> application = database.Number("PRAGMA application_id");
  absl::StatusOr<int64_t> version = database.Number("PRAGMA user_version");
  absl::StatusOr<int64_t> tables = database.Number("SELECT count(*) FROM sqlite_master");
  for (const auto* number : {&application, &version, &tables}) {
    if (!number->ok()) return number->status();
  }
  if (*tables == 0 && *application == 0) {
    return database.Execute(absl::StrCat(kSchema, kPartsSchema, "PRAGMA application_id = ", kApplicationId,
                                         "; PRAGMA user_version = ", kSchemaVersion, "; COMMIT"));
  }
  if (*application != kApplicationId) {
    return absl::DataLossError(absl::StrCat(
        database.path(), " is an SQLite file, but no job store of Hooke: choose another folder with --state-dir"));
  }
  if (*version == 1 || *version == 2) {
    absl::Status upgraded = database.Execute(
        absl::StrCat(*version == 1 ? kFrom1To2 : "", kPartsSchema, "PRAGMA user_version = ", kSchemaVersion, "; "));
    if (!upgraded.ok()) return upgraded;
  } else if (*version != kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("job store ", database.path(), " has format ", *version,
                                                      ", this hooke-server knows format ", kSchemaVersion,
                                                      ": start the version of Hooke that wrote it"));
  }
  absl::Status status = database.Execute("COMMIT");
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<SqliteStatement>> check = database.Prepare("PRAGMA quick_check(1)");
  if (!check.ok()) return check.status();
  absl::StatusOr<bool> row = (*check)->Step();
  if (!row.ok()) return row.status();
  const std::string verdict = *row ? (*check)->Bytes(0) : "no verdict";
  if (verdict == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("job store ", database.path(), " is damaged (", verdict,
                                          "): restore it from a copy, or move it away to start without jobs"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteDatabase>> database = SqliteDatabase::Open(path);
  if (!database.ok()) return database.status();
  absl::Status status = LockAndSetUp(**database);
  if (status.ok()) status = CheckOrCreateSchema(**database);
  if (!status.ok()) return status;
  auto store = std::make_unique<SqliteJobStore>(*std::move(database));
  status = store->Prepare();
  if (!status.ok()) return status;
  return store;
}

}  // namespace hooke
