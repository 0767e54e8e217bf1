#include "client/export/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "files/new_file.h"

namespace hooke {
namespace {

constexpr uint64_t kValuesMax = uint64_t{1} << 53;
constexpr uint64_t kSaturated = uint64_t{1} << 63;

uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) || product > kSaturated ? kSaturated : product;
}

uint64_t CountOf(const TensorShape& tensor) {
  uint64_t count = 1;
  for (const uint64_t extent : tensor.shape) count = SaturatingProduct(count, extent);
  return count;
}

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

uint64_t CountValues(const std::vector<TensorShape>& tensors) {
  uint64_t sum = 0;
  for (const TensorShape& tensor : tensors) {
    const uint64_t count = CountOf(tensor);
    sum = count >= kSaturated - sum ? kSaturated : sum + count;
  }
  return sum;
}

absl::StatusOr<std::string> SafetensorsHeader(const std::vector<TensorShape>& tensors, const Metadata& metadata) {
  if (CountValues(tensors) > kValuesMax) return absl::InvalidArgumentError("the model has more than 2^53 values");
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    nlohmann::ordered_json& entries = header["__metadata__"] = nlohmann::ordered_json::object();
    for (const auto& [key, text] : metadata) entries[key] = text;
  }
  std::set<absl::string_view> names;
  uint64_t begin = 0;
  for (const TensorShape& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", tensor.name, "\" is empty, reserved or given twice as the name of a tensor"));
    }
    const uint64_t end = begin + 4 * CountOf(tensor);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string json = header.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return absl::StrCat(LittleEndian(json.size()), json);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Create(const std::string& path,
                                                        const std::vector<TensorShape>& tensors,
                                                        const Metadata& metadata) {
  absl::StatusOr<std::string> header = SafetensorsHeader(tensors, metadata);
  if (!header.ok()) return header.status();
  const uint64_t bytes = header->size() + 4 * CountValues(tensors);
  std::string temporary = absl::StrCat(path, ".part-", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  // Without a temporary name the destructor removes nothing.
  SafetensorsFile file(path, fd >= 0 ? std::move(temporary) : "", fd, header->size(), bytes);
  if (fd < 0) return file.Failed("cannot be made", errno);
  // Reserves all the space now: a full disk should not stop the export halfway.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
      error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    return file.Failed(absl::StrCat("cannot hold ", bytes, " bytes"), error);
  }
  if (absl::Status status = file.WriteAt(0, *header); !status.ok()) return status;
  return file;
}

SafetensorsFile::SafetensorsFile(std::string path, std::string temporary, int fd, uint64_t header_bytes, uint64_t bytes)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), header_bytes_(header_bytes), bytes_(bytes) {}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)),
      header_bytes_(other.header_bytes_),
      bytes_(other.bytes_) {}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status SafetensorsFile::Write(uint64_t first, absl::string_view values) {
  return WriteAt(header_bytes_ + 4 * first, values);
}

absl::Status SafetensorsFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed("cannot be written", written < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(written);
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
