#include "server/records/sqlite_record_store.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/records/job_records.h"
#include "server/records/old_job_tables.h"
#include "server/records/sqlite.h"

namespace hooke {
namespace {

// "Hook" in ASCII. It marks our files, so that another program's database is not taken for one.
constexpr int64_t kApplicationId = 0x486f6f6b;
// The format of the SQLite file. It is the kRecordFormat that introduced the table `records`. It changes only when the
// table changes, not with each later format of the records.
constexpr int64_t kFileFormat = 4;

constexpr char kSchema[] = "CREATE TABLE records (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID; ";
constexpr char kPut[] = "INSERT OR REPLACE INTO records VALUES (?1, ?2)";
constexpr char kRemove[] = "DELETE FROM records WHERE key >= ?1 AND key < ?2";
constexpr char kScan[] = "SELECT key, value FROM records WHERE key >= ?1 AND key < ?2 ORDER BY key";

class SqliteRecordStore : public RecordStore {
 public:
  explicit SqliteRecordStore(std::unique_ptr<SqliteDatabase> database) : database_(std::move(database)) {}

  absl::Status Prepare();
  absl::Status Scan(const std::string& prefix, const Visit& visit) override;
  absl::Status Write(const RecordChanges& changes) override;
  std::string Name() const override { return database_->Name(); }

  // Makes the changes within the transaction that the caller has begun.
  absl::Status Change(const RecordChanges& changes);

 private:
  const std::unique_ptr<SqliteDatabase> database_;
  std::unique_ptr<SqliteStatement> put_, remove_, scan_;
};

absl::Status SqliteRecordStore::Prepare() {
  const std::pair<std::unique_ptr<SqliteStatement>*, const char*> statements[] = {
      {&put_, kPut}, {&remove_, kRemove}, {&scan_, kScan}};
  for (auto& [statement, sql] : statements) {
    absl::StatusOr<std::unique_ptr<SqliteStatement>> prepared = database_->Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status SqliteRecordStore::Scan(const std::string& prefix, const Visit& visit) {
  scan_->BindText(1, prefix).BindText(2, EndOfPrefix(prefix));
  absl::StatusOr<bool> row = scan_->Step();
  absl::Status visited;
  for (; visited.ok() && row.ok() && *row; row = scan_->Step()) {
    visited = visit(scan_->View(0), scan_->View(1));
    if (!visited.ok()) break;
  }
  scan_->Reset();
  return visited.ok() ? row.status() : visited;
}

absl::Status SqliteRecordStore::Write(const RecordChanges& changes) {
  absl::Status status = database_->Execute("BEGIN IMMEDIATE");
  if (!status.ok()) return status;
  status = Change(changes);
  if (status.ok()) status = database_->Execute("COMMIT");
  // SQLite may have rolled back by itself. Then this ROLLBACK fails and changes nothing.
  if (!status.ok()) (void)database_->Execute("ROLLBACK");
  return status;
}

absl::Status SqliteRecordStore::Change(const RecordChanges& changes) {
  absl::Status status;
  for (const std::string& prefix : changes.removed) {
    remove_->BindText(1, prefix).BindText(2, EndOfPrefix(prefix));
    if (status = remove_->Run(); !status.ok()) return status;
  }
  for (const auto& [key, value] : changes.put) {
    put_->BindText(1, key).BindBlob(2, value);
    if (status = put_->Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckPages(SqliteDatabase& database) {
  absl::StatusOr<std::unique_ptr<SqliteStatement>> check = database.Prepare("PRAGMA quick_check(1)");
  if (!check.ok()) return check.status();
  absl::StatusOr<bool> row = (*check)->Step();
  if (!row.ok()) return row.status();
  const std::string verdict = *row ? (*check)->Bytes(0) : "no verdict";
  return verdict == "ok" ? absl::OkStatus() : DamagedStore(database.Name(), verdict);
}

// Returns the file's format if this version reads it; 0 if the file is new.
absl::StatusOr<int64_t> FormatOf(SqliteDatabase& database) {
  absl::StatusOr<int64_t> application = database.Number("PRAGMA application_id");
  absl::StatusOr<int64_t> format = database.Number("PRAGMA user_version");
  absl::StatusOr<int64_t> tables = database.Number("SELECT count(*) FROM sqlite_master");
  for (const auto* number : {&application, &format, &tables}) {
    if (!number->ok()) return number->status();
  }
  if (*tables == 0 && *application == 0) return 0;
  if (*application != kApplicationId) {
    return absl::DataLossError(absl::StrCat(
        database.path(), " is an SQLite file, but no job store of Hooke: choose another folder with --state-dir"));
  }
  if (*format >= 1 && *format <= kFileFormat) return format;
  return absl::FailedPreconditionError(absl::StrCat(database.Name(), " has format ", *format,
                                                    ", this hooke-server knows format ", kFileFormat,
                                                    ": start the version of Hooke that wrote it"));
}

// Locks the file, sets SQLite's options, and begins a transaction. It takes the exclusive lock before the caller reads
// the schema, so that nobody else can change the file afterwards. A file that is not ours is refused before that,
// because WAL changes it.
absl::Status LockAndSetUp(SqliteDatabase& database) {
  absl::Status status = database.Execute("PRAGMA locking_mode = EXCLUSIVE");
  if (status.ok()) status = FormatOf(database).status();
  for (const char* sql : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "BEGIN IMMEDIATE"}) {
    if (status.ok()) status = database.Execute(sql);
  }
  return status;
}

// Returns the records of a file of `format`, which is older. DATA_LOSS: a job of it makes records that cannot be read.
absl::StatusOr<Records> RecordsOfOldTables(SqliteDatabase& database, int64_t format) {
  absl::StatusOr<StoredJobs> old = ReadOldJobTables(database, format);
  if (!old.ok()) return old.status();
  Records records = {{kFormatKey, FormatRecord()}};
  for (const JobRecord& job : old->jobs) {
    Records of_job = RecordsOf(job);
    // Once the old tables are gone, a record that this version does not read could not be mended any more.
    if (const absl::Status read = JobFrom(of_job).status(); !read.ok()) {
      return DamagedStore(database.Name(), read.message());
    }
    records.merge(of_job);
  }
  for (const ForgottenJob& job : old->forgotten) {
    const std::string key = ForgottenKey(job.number);
    records[key] = ForgottenRecord(job);
    if (const absl::Status read = ForgottenFrom(key, records[key]).status(); !read.ok()) {
      return DamagedStore(database.Name(), read.message());
    }
  }
  return records;
}

// Ends the transaction that LockAndSetUp began. An error leaves that to the file's close, which rolls back.
absl::StatusOr<std::unique_ptr<RecordStore>> OpenLocked(std::unique_ptr<SqliteDatabase> owned) {
  SqliteDatabase& database = *owned;
  const absl::StatusOr<int64_t> format = FormatOf(database);
  if (!format.ok()) return format.status();
  absl::Status status = *format == 0 ? absl::OkStatus() : CheckPages(database);
  absl::StatusOr<Records> old = Records();
  if (status.ok() && *format > 0 && *format < kFileFormat) {
    old = RecordsOfOldTables(database, *format);
    status = old.ok() ? DropOldJobTables(database) : old.status();
  }
  if (status.ok() && *format < kFileFormat) {
    status = database.Execute(
        absl::StrCat(kSchema, "PRAGMA application_id = ", kApplicationId, "; PRAGMA user_version = ", kFileFormat));
  }
  if (!status.ok()) return status;
  auto store = std::make_unique<SqliteRecordStore>(std::move(owned));
  status = store->Prepare();
  if (status.ok()) status = store->Change({{}, *std::move(old)});
  if (status.ok()) status = database.Execute("COMMIT");
  if (!status.ok()) return status;
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordStore>> OpenSqliteRecordStore(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteDatabase>> database = SqliteDatabase::Open(path);
  if (!database.ok()) return database.status();
  if (absl::Status status = LockAndSetUp(**database); !status.ok()) return status;
  return OpenLocked(*std::move(database));
}

}  // namespace hooke
