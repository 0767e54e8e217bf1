#include "client/export/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "files/new_file.h"

namespace hooke {

absl::StatusOr<SafetensorsFile> SafetensorsFile::Create(const std::string& path, uint64_t bytes) {
  std::string temporary = absl::StrCat(path, ".part-", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  // Without a temporary name the destructor removes nothing.
  SafetensorsFile file(path, fd >= 0 ? std::move(temporary) : "", fd, bytes);
  if (fd < 0) return file.Failed("cannot be made", errno);
  // Reserves all the space now: a full disk should not stop the export halfway.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
      error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    return file.Failed(absl::StrCat("cannot hold ", bytes, " bytes"), error);
  }
  return file;
}

SafetensorsFile::SafetensorsFile(std::string path, std::string temporary, int fd, uint64_t bytes)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), bytes_(bytes) {}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      written_(other.written_) {}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status SafetensorsFile::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed("cannot be written", written < 0 ? errno : EIO);
    written_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SafetensorsFile::Finish(bool replace) {
  if (fsync(fd_) != 0) return Failed("cannot be written", errno);
  if (close(std::exchange(fd_, -1)) != 0) return Failed("cannot be written", errno);
  return Publish(temporary_, path_, replace);
}

absl::Status SafetensorsFile::Failed(absl::string_view what, int error) const {
  return absl::FailedPreconditionError(
      absl::StrCat(path_, ": ", what, ": ", std::strerror(error), "; choose a file elsewhere, or make room"));
}

}  // namespace hooke
