#ifndef HOOKE_FILES_NEW_FILE_H_
#define HOOKE_FILES_NEW_FILE_H_

// Files that appear complete or not at all, and replace another only where that was asked for.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// FAILED_PRECONDITION: the path is a folder or a device; ALREADY_EXISTS: a file, and it is not to be replaced. For
// before the work.
absl::Status CheckNewFile(const std::string& path, bool replace);

// Writes the file. The errors of CheckNewFile; FAILED_PRECONDITION: it cannot be written, and why. After an error no
// new file is there.
absl::Status WriteNewFile(const std::string& path, absl::string_view text, bool replace);

// Gives a complete file its final name, durably. ALREADY_EXISTS: there is one of that name, which is not to be
// replaced. FAILED_PRECONDITION: it cannot be, and why.
absl::Status Publish(const std::string& from, const std::string& to, bool replace);

// "model.safetensors: the file exists already; ...".
absl::Status FileExistsError(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_FILES_NEW_FILE_H_
