#include "files/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "files/write_bytes.h"

namespace hooke {
namespace {

absl::Status Failed(const std::string& path, absl::string_view what, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", what, ": ", std::strerror(error), "; choose a file elsewhere, or make room"));
}

// Renames without replacing. Most file systems do that in one step. On others we check just before the rename, which
// leaves a small race.
int RenameNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (std::error_code ignored; std::filesystem::exists(std::filesystem::symlink_status(to, ignored))) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int PutInPlace(const std::string& from, const std::string& to, bool replace) {
  if (!replace) return RenameNew(from, to);
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

absl::Status CheckNewFile(const std::string& path, bool replace) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(there)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": is a folder; name a file"));
  }
  // Replacing a device such as /dev/null would take it from all users.
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is no plain file, but a device, pipe or socket; name a file"));
  }
  if (!replace && std::filesystem::exists(there)) return FileExistsError(path);
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& path, absl::string_view text, bool replace) {
  if (absl::Status status = CheckNewFile(path, replace); !status.ok()) return status;
  const std::string temporary = absl::StrCat(path, ".part-", getpid());
  // Does nothing after a successful Publish, because the temporary file is gone then.
  const auto remove = absl::MakeCleanup([&temporary] { unlink(temporary.c_str()); });
  const int error = WriteBytes(temporary, text, Durable::kYes);
  if (error != 0) return Failed(path, "cannot be written", error);
  return Publish(temporary, path, replace);
}

absl::Status Publish(const std::string& from, const std::string& to, bool replace) {
  const int error = PutInPlace(from, to, replace);
  if (error == EEXIST) return FileExistsError(to);
  if (error != 0) return Failed(to, "cannot be put in place", error);
  const std::string folder = std::filesystem::absolute(to).parent_path();
  if (const int sync_error = SyncFolder(folder); sync_error != 0)
    return Failed(to, "is written, but may not survive a power cut", sync_error);
  return absl::OkStatus();
}

absl::Status FileExistsError(absl::string_view path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": the file exists already; choose another name, or --force to replace it"));
}

}  // namespace hooke
