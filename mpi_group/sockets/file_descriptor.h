#ifndef HOOKE_MPI_GROUP_SOCKETS_FILE_DESCRIPTOR_H_
#define HOOKE_MPI_GROUP_SOCKETS_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace hooke {

// Owns an open file descriptor, or none, and closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int file) : file_(file) {}
  FileDescriptor(FileDescriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (file_ >= 0) close(file_);
  }

  int get() const { return file_; }
  bool open() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_FILE_DESCRIPTOR_H_
