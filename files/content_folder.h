#ifndef HOOKE_FILES_CONTENT_FOLDER_H_
#define HOOKE_FILES_CONTENT_FOLDER_H_

// A folder of files that never change, each named by its content. A file is there complete, or not at all.
//
// Thread-safe, if no two threads remove or publish the same name at once. All calls do I/O.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "files/write_bytes.h"

namespace hooke {

// A file on its way into the folder. Unless it is published, its destructor removes it.
class NewContent {
 public:
  ~NewContent();
  NewContent(const NewContent&) = delete;
  NewContent& operator=(const NewContent&) = delete;

  // RESOURCE_EXHAUSTED: the disk is full. INTERNAL: the file cannot be written, with the reason. After an error only
  // the destructor may follow.
  absl::Status Append(absl::string_view bytes);
  // Gives the file its name, and replaces a file of that name. Called once, as the last call. Errors are those of
  // Append.
  absl::Status Publish(const std::string& name, Durable durable);

 private:
  friend class ContentFolder;
  NewContent(std::string folder, std::string path, int file)
      : folder_(std::move(folder)), path_(std::move(path)), file_(file) {}

  const std::string folder_;
  const std::string path_;
  int file_;  // -1: closed.
  bool published_ = false;
};

class ContentFolder {
 public:
  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    absl::Time used;  // The last Publish or Use, by the wall clock.
  };

  // Makes the folder, for its owner only, and removes files that were never published. No other process may use the
  // folder at the same time. FAILED_PRECONDITION: it cannot be made or read.
  static absl::StatusOr<std::unique_ptr<ContentFolder>> Open(const std::string& path);

  absl::StatusOr<std::vector<Entry>> List() const;
  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  // Errors are those of NewContent::Append.
  absl::StatusOr<std::unique_ptr<NewContent>> Begin() const;
  void Use(const std::string& name) const;     // Sets Entry::used to now. It does nothing if there is no such file.
  void Remove(const std::string& name) const;  // Readers that have the file open go on.

 private:
  explicit ContentFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace hooke

#endif  // HOOKE_FILES_CONTENT_FOLDER_H_
