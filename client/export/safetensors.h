#ifndef HOOKE_CLIENT_EXPORT_SAFETENSORS_H_
#define HOOKE_CLIENT_EXPORT_SAFETENSORS_H_

// Writes a model as a safetensors file (job/model_file/safetensors_header.h).

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// A file that appears complete or not at all: it is written as PATH.part-PID and renamed. Not thread-safe.
class SafetensorsFile {
 public:
  // Creates the file under its temporary name, for `bytes` bytes. FAILED_PRECONDITION if it cannot be created or the
  // disk has not enough space for all of it.
  static absl::StatusOr<SafetensorsFile> Create(const std::string& path, uint64_t bytes);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) = delete;
  // Removes an unfinished file.
  ~SafetensorsFile();

  // Writes the next bytes of the file, at most those that are left of its size.
  absl::Status Append(absl::string_view bytes);

  // Makes the file, all of which was written, durable and visible under its name. ALREADY_EXISTS if a file of that name
  // exists and `replace` is false.
  absl::Status Finish(bool replace);

  uint64_t bytes() const { return bytes_; }

 private:
  SafetensorsFile(std::string path, std::string temporary, int fd, uint64_t bytes);

  absl::Status Failed(absl::string_view what, int error) const;

  std::string path_;
  std::string temporary_;
  int fd_;  // -1 after a move and after Finish.
  uint64_t bytes_;
  uint64_t written_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_SAFETENSORS_H_
