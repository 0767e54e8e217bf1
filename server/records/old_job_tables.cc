#include "server/records/old_job_tables.h"

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using Jobs = std::map<std::string, JobRecord>;  // By id.

absl::Status Damaged(const SqliteDatabase& database, absl::string_view job_id, absl::string_view what) {
  return DamagedStore(database.Name(), absl::StrCat("job ", job_id, ": ", what));
}

absl::Status ForEachRow(SqliteDatabase& database, const std::string& sql,
                        const std::function<absl::Status(const SqliteStatement& row)>& read) {
  absl::StatusOr<std::unique_ptr<SqliteStatement>> rows = database.Prepare(sql);
  if (!rows.ok()) return rows.status();
  absl::StatusOr<bool> row = (*rows)->Step();
  for (; row.ok() && *row; row = (*rows)->Step()) {
    if (absl::Status status = read(**rows); !status.ok()) return status;
  }
  return row.status();
}

absl::StatusOr<bool> HasTable(SqliteDatabase& database, absl::string_view table) {
  absl::StatusOr<int64_t> tables =
      database.Number(absl::StrCat("SELECT count(*) FROM sqlite_master WHERE name = '", table, "'"));
  if (!tables.ok()) return tables.status();
  return *tables > 0;
}

absl::Status ReadJobs(SqliteDatabase& database, Jobs& jobs) {
  return ForEachRow(database,
                    "SELECT job_id, number, submission_id, spec, state, reason, submitted_unix_ms, started_unix_ms, "
                    "first_step_unix_ms, ended_unix_ms, center FROM jobs",
                    [&](const SqliteStatement& row) {
                      JobRecord& job = jobs[row.Bytes(0)];
                      job.job_id = row.Bytes(0);
                      job.number = row.Int(1);
                      job.submission_id = row.Bytes(2);
                      if (!job.spec.ParseFromString(row.Bytes(3))) return Damaged(database, job.job_id, "its spec");
                      if (!v1::JobState_IsValid(row.Int(4))) return Damaged(database, job.job_id, "its state");
                      job.state = static_cast<v1::JobState>(row.Int(4));
                      job.reason = row.Bytes(5);
                      job.submitted_unix_ms = row.Int(6);
                      job.started_unix_ms = row.Int(7);
                      job.first_step_unix_ms = row.Int(8);
                      job.ended_unix_ms = row.Int(9);
                      if (!row.IsNull(10) && !job.center.emplace().ParseFromString(row.Bytes(10))) {
                        return Damaged(database, job.job_id, "its accuracy");
                      }
                      return absl::OkStatus();
                    });
}

// Gives each group that has a worker one part, on that worker. ReadParts replaces the part for groups on several
// workers.
absl::Status ReadGroups(SqliteDatabase& database, Jobs& jobs) {
  return ForEachRow(
      database,
      "SELECT job_id, group_index, task, state, reason, worker, site, incarnation, last_event, failures, best_step, "
      "evaluated FROM job_groups ORDER BY job_id, group_index",
      [&](const SqliteStatement& row) {
        JobRecord& job = jobs[row.Bytes(0)];
        GroupRecord group;
        group.group = row.Int(1);
        if (group.group != job.groups.size() || !v1::GroupStart::Task_IsValid(row.Int(2)) ||
            !v1::GroupState_IsValid(row.Int(3))) {
          return Damaged(database, row.Bytes(0), "its groups");
        }
        group.task = static_cast<v1::GroupStart::Task>(row.Int(2));
        group.state = static_cast<v1::GroupState>(row.Int(3));
        group.reason = row.Bytes(4);
        const std::string worker = row.Bytes(5);
        const uint64_t last_event = row.Int(8);
        if (!worker.empty()) group.parts.push_back({worker, 0, job.spec.groups().ranks(), "", last_event});
        group.site = row.Bytes(6);
        group.incarnation = row.Int(7);
        group.failures = row.Int(9);
        group.best_step = row.Int(10);
        group.evaluated = row.Int(11) != 0;
        job.groups.push_back(std::move(group));
        return absl::OkStatus();
      });
}

absl::Status ReadParts(SqliteDatabase& database, Jobs& jobs) {
  return ForEachRow(
      database,
      "SELECT job_id, group_index, part, worker, first_rank, ranks, address, last_event, ended FROM group_parts "
      "ORDER BY job_id, group_index, part",
      [&](const SqliteStatement& row) {
        JobRecord& job = jobs[row.Bytes(0)];
        const auto group = static_cast<uint64_t>(row.Int(1));
        if (group >= job.groups.size()) return Damaged(database, row.Bytes(0), "its groups' parts");
        std::vector<GroupPart>& parts = job.groups[group].parts;
        if (row.Int(2) == 0) parts.clear();
        GroupPart part;
        part.worker = row.Bytes(3);
        part.first_rank = row.Int(4);
        part.ranks = row.Int(5);
        part.address = row.Bytes(6);
        part.last_event = row.Int(7);
        part.ended = row.Int(8) != 0;
        parts.push_back(std::move(part));
        return absl::OkStatus();
      });
}

absl::Status ReadServers(SqliteDatabase& database, const char* id, Jobs& jobs) {
  return ForEachRow(database, absl::StrCat("SELECT job_id, ", id, ", address FROM job_servers ORDER BY job_id, shard"),
                    [&](const SqliteStatement& row) {
                      jobs[row.Bytes(0)].servers.push_back({row.Bytes(1), row.Bytes(2)});
                      return absl::OkStatus();
                    });
}

// Not all files of the same format have this table.
absl::Status ReadForgotten(SqliteDatabase& database, std::vector<ForgottenJob>& forgotten) {
  const absl::StatusOr<bool> has_table = HasTable(database, "forgotten_jobs");
  if (!has_table.ok() || !*has_table) return has_table.status();
  return ForEachRow(database, "SELECT job_id, number, job_key FROM forgotten_jobs ORDER BY number",
                    [&](const SqliteStatement& row) {
                      forgotten.push_back({row.Bytes(0), static_cast<uint64_t>(row.Int(1)), row.Bytes(2)});
                      return absl::OkStatus();
                    });
}

}  // namespace

absl::StatusOr<StoredJobs> ReadOldJobTables(SqliteDatabase& database, int64_t format) {
  Jobs jobs;
  StoredJobs stored;
  absl::Status status = ReadJobs(database, jobs);
  const size_t known = jobs.size();
  if (status.ok()) status = ReadGroups(database, jobs);
  if (status.ok() && format >= 3) status = ReadParts(database, jobs);
  if (status.ok()) status = ReadServers(database, format >= 2 ? "server_id" : "''", jobs);
  if (status.ok()) status = ReadForgotten(database, stored.forgotten);
  if (!status.ok()) return status;
  if (jobs.size() != known) return DamagedStore(database.Name(), "groups or servers of a job that is not there");
  for (auto& [job_id, job] : jobs) stored.jobs.push_back(std::move(job));
  return stored;
}

absl::Status DropOldJobTables(SqliteDatabase& database) {
  return database.Execute(
      "DROP TABLE IF EXISTS group_parts; DROP TABLE IF EXISTS forgotten_jobs; DROP TABLE job_groups; "
      "DROP TABLE job_servers; DROP TABLE jobs; ");
}

}  // namespace hooke
