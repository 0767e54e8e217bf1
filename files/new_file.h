#ifndef HOOKE_FILES_NEW_FILE_H_
#define HOOKE_FILES_NEW_FILE_H_

// Files that appear complete or not at all, and replace another file only on request.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Checks that nothing at `path` keeps WriteNewFile from making the file. Call it before the work that makes the
// content. FAILED_PRECONDITION: the path is a folder, device, pipe or socket. ALREADY_EXISTS: it is a file, and
// `replace` is false.
absl::Status CheckNewFile(const std::string& path, bool replace);

// Writes the file durably. Fails like CheckNewFile. FAILED_PRECONDITION, with the reason, also if the file cannot be
// written. After an error there is no new file, except if only the sync of its folder failed, as the message then says.
absl::Status WriteNewFile(const std::string& path, absl::string_view text, bool replace);

// Gives a complete file its final name, durably. ALREADY_EXISTS: a file of that name exists, and `replace` is false.
// FAILED_PRECONDITION: renaming or syncing fails, with the reason.
absl::Status Publish(const std::string& from, const std::string& to, bool replace);

// Returns the ALREADY_EXISTS error. Example: "model.safetensors: the file exists already; ...".
absl::Status FileExistsError(absl::string_view path);

}  // namespace hooke

#endif  // HOOKE_FILES_NEW_FILE_H_
