#ifndef HOOKE_SERVER_COORDINATOR_SQLITE_H_
#define HOOKE_SERVER_COORDINATOR_SQLITE_H_

// A thin C++ face of SQLite: a database and its prepared statements, errors as Status with the file's name. Used by
// SqliteJobStore only. Not thread-safe: one thread at a time.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

class SqliteDatabase;

// One prepared statement. Bind all, then Step until it says false, then Reset. Lives no longer than its database.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  // Positions count from 1.
  SqliteStatement& Bind(int position, int64_t value);
  SqliteStatement& BindText(int position, absl::string_view value);
  SqliteStatement& BindBlob(int position, absl::string_view value);
  SqliteStatement& BindNull(int position);

  // True: a row is there. Errors of the Binds come out here, too.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets.
  absl::Status Run();
  void Reset();

  // Of the current row; columns count from 0.
  int64_t Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  std::string Bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  SqliteStatement& Note(int code);

  SqliteDatabase* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_code_ = SQLITE_OK;
};

class SqliteDatabase {
 public:
  // Creates the file when it is not there.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path);
  ~SqliteDatabase();

  // Statements without parameters.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<std::unique_ptr<SqliteStatement>> Prepare(absl::string_view sql);
  // The one number that `sql` yields.
  absl::StatusOr<int64_t> Number(absl::string_view sql);

  const std::string& path() const { return path_; }

  // The last error, for result code `code`: DATA_LOSS: the file is damaged; FAILED_PRECONDITION: another process holds
  // it; RESOURCE_EXHAUSTED: the disk is full; INTERNAL: it cannot be read or written, or our mistake.
  absl::Status Error(int code, absl::string_view doing) const;

 private:
  explicit SqliteDatabase(const std::string& path) : path_(path) {}

  const std::string path_;
  sqlite3* handle_ = nullptr;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SQLITE_H_
