#include "server/server_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "files/new_file.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

bool IsIdentity(absl::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerFolder>> ServerFolder::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make folder ", path, ": ", error.message(), ": choose another with --state-dir"));
  }
  const std::string lock_path = path + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", lock_path, ": ", std::strerror(errno),
                                               ": choose another folder with --state-dir"));
  }
  std::unique_ptr<ServerFolder> folder(new ServerFolder(path, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder ", path, " is in use by another hooke-server: stop that one, or choose another with --state-dir"));
  }
  if (absl::Status status = folder->ReadOrDrawIdentity(); !status.ok()) return status;
  return folder;
}

absl::Status ServerFolder::ReadOrDrawIdentity() {
  const std::string path = path_ + "/identity";
  std::ifstream file(path, std::ios::binary);
  if (file.is_open()) {
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (!IsIdentity(text)) {
      return absl::DataLossError(absl::StrCat(
          path, " is damaged: restore it from a copy. If you remove it, this server counts as a new one, and the ",
          "centers in its folder as those of a server that is gone"));
    }
    identity_ = std::move(text);
    return absl::OkStatus();
  }
  identity_ = RandomHex(4);
  return WriteNewFile(path, identity_ + "\n", /*replace=*/false);
}

ServerFolder::~ServerFolder() { close(lock_); }

}  // namespace hooke
