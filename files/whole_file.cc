#include "files/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "files/write_bytes.h"

namespace hooke {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot write ", path, ": ", std::strerror(error));
  const bool full = error == ENOSPC || error == EDQUOT;
  return full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

}  // namespace

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  const std::string part = path + ".part";
  int error = WriteBytes(part, bytes, Durable::kNo);
  if (error == 0 && std::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (error == 0) error = errno;
  std::remove(part.c_str());
  return CannotWrite(path, error);
}

absl::Status OverwriteFile(const std::string& path, absl::string_view bytes) {
  const int error = OverwriteBytes(path, bytes);
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat("there is no file ", path));
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

}  // namespace hooke
