#include "files/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (file && std::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const std::string text = absl::StrCat("cannot write ", path, ": ", std::strerror(errno));
  std::remove(part.c_str());
  return full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

}  // namespace hooke
