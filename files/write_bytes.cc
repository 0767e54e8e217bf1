#include "files/write_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hooke {

int WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int error = fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  close(folder);
  return error;
}

int WriteBytes(const std::string& path, absl::string_view bytes, Durable durable) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int error = WriteAll(file, bytes);
  if (error == 0 && durable == Durable::kYes && fsync(file) != 0 && errno != EINVAL) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

int OverwriteBytes(const std::string& path, absl::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  int error = WriteAll(file, bytes);
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace hooke
