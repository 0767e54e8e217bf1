#ifndef HOOKE_SERVER_PARAMETERS_STORAGE_H_
#define HOOKE_SERVER_PARAMETERS_STORAGE_H_

// Storage of whole files by name, each written completely or not at all. OpenFolderStorage is the real one;
// in_memory_storage.h has one for tests, with faults.
//
// A Storage is thread-safe, but two threads must not write the same name at once. Writers and readers belong to one
// thread and do not outlive their Storage.
//
// Errors: NOT_FOUND, there is no such file; RESOURCE_EXHAUSTED, the disk is full; UNAVAILABLE, any other failure of the
// disk; the message names the file. INVALID_ARGUMENT, the name is not allowed.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// Writes a file that is invisible before Commit. If it is destroyed without Commit, it leaves nothing behind.
class StorageWriter {
 public:
  virtual ~StorageWriter() = default;

  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Gives the file its name. After OK the file is complete and survives a power failure, and it has replaced any
  // earlier file of that name. Call it once, last.
  virtual absl::Status Commit() = 0;
};

class StorageReader {
 public:
  virtual ~StorageReader() = default;

  virtual uint64_t size() const = 0;
  // Returns when the file was committed, by the clock of its disk.
  virtual absl::Time written() const = 0;
  // Returns the next `bytes` bytes, or fewer at the end of the file. Never takes more memory than the file has bytes
  // left.
  virtual absl::StatusOr<std::string> Read(uint64_t bytes) = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // Begins to write a file. Its name is 1 to 200 characters of [A-Za-z0-9._-]; it does not start with a dot or end with
  // ".part".
  virtual absl::StatusOr<std::unique_ptr<StorageWriter>> Create(absl::string_view name) = 0;
  virtual absl::StatusOr<std::unique_ptr<StorageReader>> Open(absl::string_view name) = 0;
  // Returns the names of all committed files, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // Removes the file. Also returns OK if there is no such file.
  virtual absl::Status Remove(absl::string_view name) = 0;
  // Returns the place of the files for messages, such as "/var/lib/hooke/centers".
  virtual std::string Describe() const = 0;
};

// Checks that Create accepts the name. INVALID_ARGUMENT says what is wrong and what is allowed.
absl::Status CheckStorageName(absl::string_view name);

// Keeps files in `folder`, and makes it and its parents if necessary. Removes what interrupted writes left there, so
// two live storages must never share a folder.
absl::StatusOr<std::unique_ptr<Storage>> OpenFolderStorage(absl::string_view folder);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_STORAGE_H_
