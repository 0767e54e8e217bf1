#ifndef HOOKE_FILES_WHOLE_FILE_H_
#define HOOKE_FILES_WHOLE_FILE_H_

// Files that readers see complete or not at all.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Writes a file beside `path` and renames it to `path`. Readers see the old file until the new one is complete. The
// file is not synced, so a crash of the machine may lose it. RESOURCE_EXHAUSTED: the disk is full. INTERNAL: the file
// cannot be written, with the reason.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

// Writes the bytes over the start of the file `path`, and leaves the bytes after them. Readers may see a part of the
// new bytes. NOT_FOUND: there is no such file. Other errors are those of WriteWholeFile.
absl::Status OverwriteFile(const std::string& path, absl::string_view bytes);

}  // namespace hooke

#endif  // HOOKE_FILES_WHOLE_FILE_H_
