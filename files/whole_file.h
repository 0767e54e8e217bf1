#ifndef HOOKE_FILES_WHOLE_FILE_H_
#define HOOKE_FILES_WHOLE_FILE_H_

// Files that are there whole or not at all. Used by main.cc and by coordinator/profile_store.cc.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Writes beside `path` and renames: whoever sees the file sees all of it, and an old one stays until then. A crash of
// the machine may lose it. RESOURCE_EXHAUSTED: the disk is full; INTERNAL: it cannot be written, and why.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

}  // namespace hooke

#endif  // HOOKE_FILES_WHOLE_FILE_H_
