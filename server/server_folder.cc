#include "server/server_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<ServerFolder>> ServerFolder::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make folder ", path, ": ", error.message(), ": choose another with --state-dir"));
  }
  const std::string lock_path = path + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", lock_path, ": ", std::strerror(errno),
                                               ": choose another folder with --state-dir"));
  }
  std::unique_ptr<ServerFolder> folder(new ServerFolder(path, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder ", path, " is in use by another hooke-server: stop that one, or choose another with --state-dir"));
  }
  return folder;
}

ServerFolder::~ServerFolder() { close(lock_); }

}  // namespace hooke
