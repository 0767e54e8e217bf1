#ifndef HOOKE_FILES_WRITE_BYTES_H_
#define HOOKE_FILES_WRITE_BYTES_H_

// Writes bytes to a file. new_file.h, whole_file.h and content_folder.h build on it, and add errors for people.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

enum class Durable { kNo, kYes };

// Writes all of `bytes` to an open file. Returns 0 or an errno.
int WriteAll(int file, absl::string_view bytes);

// Makes names in the folder durable: those of new files, and those that files were renamed to. Returns 0 or an errno.
int SyncFolder(const std::string& path);

// Makes the file `path`, or empties it, and writes all of `bytes`. With Durable::kYes the bytes are on the disk on
// return. For a device or pipe there is nothing to sync, which is no error. Returns 0 or an errno. After an error the
// file may hold a part of the bytes.
int WriteBytes(const std::string& path, absl::string_view bytes, Durable durable);

// Writes all of `bytes` to the start of the file, which must exist. The file does not become shorter. Returns 0 or an
// errno.
int OverwriteBytes(const std::string& path, absl::string_view bytes);

}  // namespace hooke

#endif  // HOOKE_FILES_WRITE_BYTES_H_
