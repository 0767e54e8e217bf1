#ifndef HOOKE_SERVER_RECORDS_SQLITE_H_
#define HOOKE_SERVER_RECORDS_SQLITE_H_

// A thin C++ wrapper of SQLite: a database and its prepared statements. Errors are Status values that name the file.
// Only one thread at a time may use a database and its statements.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

class SqliteDatabase;

// One prepared statement. Bind all its parameters, then call Step until it returns false, then Reset. Destroy it before
// its database.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  // Sets the parameter at `position`, counted from 1.
  SqliteStatement& Bind(int position, int64_t value);
  SqliteStatement& BindText(int position, absl::string_view value);
  SqliteStatement& BindBlob(int position, absl::string_view value);

  // Moves to the next row of the result. Returns false if there is none. It also returns errors of earlier Binds.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets.
  absl::Status Run();
  void Reset();

  // Columns of the current row, counted from 0.
  int64_t Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  std::string Bytes(int column) const { return std::string(View(column)); }
  absl::string_view View(int column) const;  // Valid until the next Step or Reset.

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
  // Creates the file if it does not exist.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path);
  ~SqliteDatabase();

  // Runs one or more SQL statements without parameters.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<std::unique_ptr<SqliteStatement>> Prepare(absl::string_view sql);
  // Runs a query whose result is one number.
  absl::StatusOr<int64_t> Number(absl::string_view sql);

  const std::string& path() const { return path_; }
  // The file in messages: "job store PATH".
  std::string Name() const;

  // Turns result code `code` and SQLite's last message into a Status. DATA_LOSS: the file is damaged.
  // FAILED_PRECONDITION: another process holds it. RESOURCE_EXHAUSTED: the disk is full. INTERNAL: the file cannot be
  // read or written, or a statement is wrong.
  absl::Status Error(int code, absl::string_view doing) const;

 private:
  explicit SqliteDatabase(const std::string& path) : path_(path) {}

  const std::string path_;
  sqlite3* handle_ = nullptr;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_SQLITE_H_
