#include "files/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "files/write_bytes.h"

namespace hooke {

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  const std::string part = path + ".part";
  int error = WriteBytes(part, bytes, Durable::kNo);
  if (error == 0 && std::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (error == 0) error = errno;
  std::remove(part.c_str());
  const std::string text = absl::StrCat("cannot write ", path, ": ", std::strerror(error));
  const bool full = error == ENOSPC || error == EDQUOT;
  return full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

}  // namespace hooke
