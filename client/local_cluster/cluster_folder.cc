#include "client/local_cluster/cluster_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "files/whole_file.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

struct flock WholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string NextLine(std::ifstream& in) {
  std::string line;
  std::getline(in, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

absl::Status Failed(const std::string& path, absl::string_view what, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", what, ": ", std::strerror(error), "; choose another folder with --state-dir"));
}

}  // namespace

absl::StatusOr<ClusterFolder> ClusterFolder::Own(const std::string& path, absl::string_view command) {
  std::error_code error;
  fs::create_directories(fs::path(path) / "logs", error);
  if (error) return Failed(path, "cannot make the folder", error.value());
  const std::string lock_path = fs::path(path) / "lock";
  const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Failed(lock_path, "cannot be opened", errno);
  ClusterFolder folder(path, fd);
  struct flock lock = WholeFile();
  // The kernel drops the lock however the process ends, so a killed `up` leaves no stale lock.
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return Failed(lock_path, "cannot be locked", errno);
    // After this the destructor does not remove the owner's address.
    folder.lock_fd_ = -1;
    close(fd);
    const ClusterOwner owner = OwnerOf(path);
    return absl::AlreadyExistsError(absl::StrCat("another `", owner.command, "` (pid ", owner.pid, ") runs from ", path,
                                                 "; stop it, or choose another folder with --state-dir"));
  }
  // Removes the address that a killed `up` may have left.
  fs::remove(fs::path(path) / "coordinator", error);
  const std::string owner = absl::StrCat(getpid(), "\n", command, "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
    return Failed(lock_path, "cannot be written", errno);
  }
  return folder;
}

ClusterFolder::ClusterFolder(ClusterFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

ClusterFolder::~ClusterFolder() {
  if (lock_fd_ < 0) return;
  std::error_code ignored;
  fs::remove(fs::path(path_) / "coordinator", ignored);
  close(lock_fd_);
}

absl::Status ClusterFolder::Announce(absl::string_view coordinator) {
  return WriteWholeFile(fs::path(path_) / "coordinator", absl::StrCat(coordinator, "\n"));
}

ClusterOwner OwnerOf(const std::string& path) {
  std::ifstream lock(fs::path(path) / "lock");
  ClusterOwner owner;
  owner.pid = NextLine(lock);
  owner.command = NextLine(lock);
  return owner;
}

std::optional<std::string> RunningClusterAddress(const std::string& path) {
  const std::string lock_path = fs::path(path) / "lock";
  const int fd = open(lock_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  // Asks who holds the lock without taking it, so as not to disturb an `up` that starts at this moment.
  struct flock lock = WholeFile();
  const bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  std::ifstream file(fs::path(path) / "coordinator");
  const std::string address = held ? NextLine(file) : "";
  return address.empty() ? std::nullopt : std::optional<std::string>(address);
}

}  // namespace hooke
