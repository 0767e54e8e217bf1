#ifndef HOOKE_CLIENT_EXPORT_SAFETENSORS_H_
#define HOOKE_CLIENT_EXPORT_SAFETENSORS_H_

// Writes a model as a safetensors file, the format of Hugging Face's `safetensors` package.
//
//   8 bytes    length N of the header, little-endian
//   N bytes    JSON, filled up with spaces so that the values begin at a multiple of 8:
//              {"__metadata__": {"key": "text"},
//               "conv1.weight": {"dtype": "F32", "shape": [32, 1, 5, 5], "data_offsets": [0, 3200]}, ...}
//   the rest   the values; data_offsets are bytes from here
//
// Example: one scalar s = 1.0 without metadata:
//   38 00 00 00 00 00 00 00  {"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} and 3 spaces  00 00 80 3f

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// A float32 tensor. The tensors of a file follow one another, row-major.
struct TensorShape {
  std::string name;
  std::vector<uint64_t> shape;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Returns the bytes that come before the values in the file. INVALID_ARGUMENT if a name is empty, repeated or
// "__metadata__", or if there are more than 2^53 values.
absl::StatusOr<std::string> SafetensorsHeader(const std::vector<TensorShape>& tensors, const Metadata& metadata);

// The number of values in all tensors together; 2^63 if there are more.
uint64_t CountValues(const std::vector<TensorShape>& tensors);

// A file that appears complete or not at all: it is written as PATH.part-PID and renamed. Not thread-safe.
class SafetensorsFile {
 public:
  // Creates the file under its temporary name. FAILED_PRECONDITION if it cannot be created or the disk has not enough
  // space for all of it. INVALID_ARGUMENT as from SafetensorsHeader.
  static absl::StatusOr<SafetensorsFile> Create(const std::string& path, const std::vector<TensorShape>& tensors,
                                                const Metadata& metadata);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) = delete;
  // Removes an unfinished file.
  ~SafetensorsFile();

  // Writes little-endian float32 values into the file, from value `first` on. All of them must lie within the file.
  absl::Status Write(uint64_t first, absl::string_view values);

  // Makes the file durable and visible under its name. ALREADY_EXISTS if a file of that name exists and `replace` is
  // false.
  absl::Status Finish(bool replace);

  uint64_t bytes() const { return bytes_; }

 private:
  SafetensorsFile(std::string path, std::string temporary, int fd, uint64_t header_bytes, uint64_t bytes);

  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);
  absl::Status Failed(absl::string_view what, int error) const;

  std::string path_;
  std::string temporary_;
  int fd_;  // -1 after a move and after Finish.
  uint64_t header_bytes_;
  uint64_t bytes_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_SAFETENSORS_H_
