// The real Storage: a folder. A file is written as "<name>.part", flushed, renamed, and the folder is flushed.
#include "server/parameters/storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr absl::string_view kPart = ".part";

// Makes a Status from an errno. Its code tells the caller what to do. If the disk is full, an operator frees space.
// Otherwise a group tries again.
absl::Status FileError(absl::string_view what, absl::string_view path, int error) {
  const std::string message = absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == ENOSPC || error == EDQUOT)
    return absl::ResourceExhaustedError(absl::StrCat(message, "; free some space there"));
  return absl::UnavailableError(message);
}

// Owns a descriptor.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int get() const { return descriptor_; }
  // Closes the file now, so that the caller sees the error. False: closing failed.
  bool Close() { return close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

absl::Status FlushFolder(const std::string& folder) {
  const File file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0) return FileError("open", folder, errno);
  if (fsync(file.get()) != 0) return FileError("flush", folder, errno);
  return absl::OkStatus();
}

class FolderWriter : public StorageWriter {
 public:
  FolderWriter(File file, std::string folder, absl::string_view name)
      : file_(std::move(file)),
        folder_(std::move(folder)),
        path_(absl::StrCat(folder_, "/", name)),
        part_(absl::StrCat(path_, kPart)) {}

  ~FolderWriter() override {
    if (!committed_) unlink(part_.c_str());
  }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FileError("write", part_, errno);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    if (fsync(file_.get()) != 0) return FileError("flush", part_, errno);
    if (!file_.Close()) return FileError("close", part_, errno);
    if (rename(part_.c_str(), path_.c_str()) != 0) return FileError("rename", part_, errno);
    committed_ = true;
    return FlushFolder(folder_);
  }

 private:
  File file_;
  const std::string folder_;
  const std::string path_;
  const std::string part_;
  bool committed_ = false;
};

class FolderReader : public StorageReader {
 public:
  FolderReader(File file, std::string path, const struct stat& info)
      : file_(std::move(file)),
        path_(std::move(path)),
        size_(static_cast<uint64_t>(info.st_size)),
        written_(absl::TimeFromTimespec(info.st_mtim)) {}

  uint64_t size() const override { return size_; }
  absl::Time written() const override { return written_; }

  absl::StatusOr<std::string> Read(uint64_t bytes) override {
    std::string result(std::min(bytes, size_ - offset_), '\0');
    size_t filled = 0;
    while (filled < result.size()) {
      const ssize_t got = read(file_.get(), result.data() + filled, result.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("read", path_, errno);
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    result.resize(filled);
    offset_ += filled;
    return result;
  }

 private:
  File file_;
  const std::string path_;
  const uint64_t size_;
  const absl::Time written_;
  uint64_t offset_ = 0;
};

class FolderStorage : public Storage {
 public:
  explicit FolderStorage(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<std::unique_ptr<StorageWriter>> Create(absl::string_view name) override {
    if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
    const std::string part = absl::StrCat(folder_, "/", name, kPart);
    File file(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return FileError("create", part, errno);
    return std::make_unique<FolderWriter>(std::move(file), folder_, name);
  }

  absl::StatusOr<std::unique_ptr<StorageReader>> Open(absl::string_view name) override {
    if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
    std::string path = absl::StrCat(folder_, "/", name);
    File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return FileError("open", path, errno);
    struct stat info;
    if (fstat(file.get(), &info) != 0) return FileError("look at", path, errno);
    return std::make_unique<FolderReader>(std::move(file), std::move(path), info);
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (CheckStorageName(name).ok()) names.push_back(std::move(name));
    }
    if (error) return FileError("list", folder_, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Remove(absl::string_view name) override {
    if (absl::Status status = CheckStorageName(name); !status.ok()) return status;
    const std::string path = absl::StrCat(folder_, "/", name);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return FileError("remove", path, errno);
    return absl::OkStatus();
  }

  std::string Describe() const override { return folder_; }

  absl::Status RemoveLeftovers() {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string path = entry->path().string();
      if (absl::EndsWith(path, kPart)) unlink(path.c_str());
    }
    return error ? FileError("list", folder_, error.value()) : absl::OkStatus();
  }

 private:
  const std::string folder_;
};

}  // namespace

absl::Status CheckStorageName(absl::string_view name) {
  const bool good = !name.empty() && name.size() <= 200 && name[0] != '.' && !absl::EndsWith(name, kPart) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                             c == '_' || c == '-';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a stored file's name is 1 to 200 characters of A-Z, a-z, 0-9, '.', '_' and '-', does "
                   "not start with '.' and does not end with '.part'; this one has ",
                   name.size(), " characters"));
}

absl::StatusOr<std::unique_ptr<Storage>> OpenFolderStorage(absl::string_view folder) {
  std::string path(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError("make folder", path, error.value());
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) return FileError("use folder", path, errno);
  auto storage = std::make_unique<FolderStorage>(std::move(path));
  if (absl::Status status = storage->RemoveLeftovers(); !status.ok()) return status;
  return storage;
}

}  // namespace hooke
