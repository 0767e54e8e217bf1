#include "files/content_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kNew = "new-";  // Files that are not published yet have names with this start.

absl::Status CannotWrite(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot write ", path, ": ", strerror(error));
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

}  // namespace

NewContent::~NewContent() {
  if (file_ >= 0) close(file_);
  if (!published_) unlink(path_.c_str());
}

absl::Status NewContent::Append(absl::string_view bytes) {
  const int error = WriteAll(file_, bytes);
  return error == 0 ? absl::OkStatus() : CannotWrite(path_, error);
}

absl::Status NewContent::Publish(const std::string& name, Durable durable) {
  int error = 0;
  if (durable == Durable::kYes && fsync(file_) != 0 && errno != EINVAL) error = errno;
  if (close(std::exchange(file_, -1)) != 0 && error == 0) error = errno;
  if (error == 0 && rename(path_.c_str(), absl::StrCat(folder_, "/", name).c_str()) != 0) error = errno;
  if (error != 0) return CannotWrite(path_, error);
  published_ = true;
  if (durable == Durable::kYes) error = SyncFolder(folder_);
  return error == 0 ? absl::OkStatus() : CannotWrite(folder_, error);
}

absl::StatusOr<std::unique_ptr<ContentFolder>> ContentFolder::Open(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot make the folder ", path, ": ", error.message()));
  std::unique_ptr<ContentFolder> folder(new ContentFolder(path));
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, kNew)) folder->Remove(name);
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot read the folder ", path, ": ", error.message()));
  return folder;
}

absl::StatusOr<std::vector<ContentFolder::Entry>> ContentFolder::List() const {
  std::vector<Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(path_, error)) {
    Entry entry;
    entry.name = file.path().filename();
    struct stat info;
    if (absl::StartsWith(entry.name, kNew) || lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      continue;
    entry.bytes = static_cast<uint64_t>(info.st_size);
    entry.used = absl::TimeFromTimespec(info.st_mtim);
    entries.push_back(std::move(entry));
  }
  if (error)
    return absl::FailedPreconditionError(absl::StrCat("cannot read the folder ", path_, ": ", error.message()));
  return entries;
}

absl::StatusOr<std::unique_ptr<NewContent>> ContentFolder::Begin() const {
  std::string path = absl::StrCat(path_, "/", kNew, "XXXXXX");
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return CannotWrite(path, errno);
  return std::unique_ptr<NewContent>(new NewContent(path_, path, file));
}

void ContentFolder::Use(const std::string& name) const { utimensat(AT_FDCWD, PathOf(name).c_str(), nullptr, 0); }

void ContentFolder::Remove(const std::string& name) const { unlink(PathOf(name).c_str()); }

}  // namespace hooke
