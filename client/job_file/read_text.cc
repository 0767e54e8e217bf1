#include "client/job_file/read_text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/job_keys.h"
#include "job/visible_text.h"

namespace hooke {

absl::StatusOr<std::string> ReadStart(const std::string& path, size_t bytes_max) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::FailedPreconditionError(absl::StrCat("cannot be read: ", std::strerror(errno)));
  std::string text(bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return absl::FailedPreconditionError("cannot be read");
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<std::string> ReadJsonFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  // Reading a pipe could wait forever.
  const bool plain = !std::filesystem::exists(there) || std::filesystem::is_regular_file(there);
  absl::StatusOr<std::string> text =
      plain ? ReadStart(path, kJsonBytesMax)
            : absl::FailedPreconditionError(std::filesystem::is_directory(there)
                                                ? "is a folder"
                                                : "is no plain file, but a device, pipe or socket");
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat(Escaped(path), " ", text.status().message()));
  if (text->size() > kJsonBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(Escaped(path), " is larger than 64 KiB"));
  }
  if (!nlohmann::json::accept(*text)) return absl::InvalidArgumentError(absl::StrCat(Escaped(path), " is not JSON"));
  return text;
}

}  // namespace hooke
