#include "server/records/sqlite.h"

#include "absl/strings/str_cat.h"
#include "server/records/record_store.h"

namespace hooke {

SqliteStatement& SqliteStatement::Note(int code) {
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
  return *this;
}

SqliteStatement& SqliteStatement::Bind(int position, int64_t value) {
  return Note(sqlite3_bind_int64(statement_.get(), position, value));
}

// Binds "" instead of the data of an empty string_view. That may be a null pointer, which SQLite would bind as NULL.
SqliteStatement& SqliteStatement::BindText(int position, absl::string_view value) {
  return Note(sqlite3_bind_text64(statement_.get(), position, value.empty() ? "" : value.data(), value.size(),
                                  SQLITE_TRANSIENT, SQLITE_UTF8));
}

SqliteStatement& SqliteStatement::BindBlob(int position, absl::string_view value) {
  return Note(sqlite3_bind_blob64(statement_.get(), position, value.empty() ? "" : value.data(), value.size(),
                                  SQLITE_TRANSIENT));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  const int code = bind_code_ != SQLITE_OK ? bind_code_ : sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  absl::Status status = database_->Error(code, sqlite3_sql(statement_.get()));
  Reset();
  return status;
}

absl::Status SqliteStatement::Run() {
  absl::StatusOr<bool> row = Step();
  while (row.ok() && *row) row = Step();
  Reset();
  return row.status();
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bind_code_ = SQLITE_OK;
}

absl::string_view SqliteStatement::View(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return "";
  return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const std::string& path) {
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(path));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &database->handle_, flags, nullptr);
  if (code != SQLITE_OK) return database->Error(code, "opening it");
  return database;
}

SqliteDatabase::~SqliteDatabase() { sqlite3_close(handle_); }

absl::Status SqliteDatabase::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, sql);
}

absl::StatusOr<std::unique_ptr<SqliteStatement>> SqliteDatabase::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Error(code, sql);
  return std::make_unique<SqliteStatement>(this, statement);
}

absl::StatusOr<int64_t> SqliteDatabase::Number(absl::string_view sql) {
  absl::StatusOr<std::unique_ptr<SqliteStatement>> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  absl::StatusOr<bool> row = (*statement)->Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::DataLossError(absl::StrCat(path_, ": no answer to ", sql));
  return (*statement)->Int(0);
}

std::string SqliteDatabase::Name() const { return absl::StrCat("job store ", path_); }

absl::Status SqliteDatabase::Error(int code, absl::string_view doing) const {
  const std::string said = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return DamagedStore(Name(), said);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(absl::StrCat(
          Name(), " is in use by another hooke-server: stop that one, or choose another folder with --state-dir"));
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(Name(), " cannot grow (", said, "): free disk space"));
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::InternalError(absl::StrCat(Name(), " cannot be read or written (", said,
                                              "): check the disk, the folder and its permissions"));
    default:
      return absl::InternalError(absl::StrCat(Name(), ": ", said, ", in: ", doing));
  }
}

}  // namespace hooke
