#include "worker/daemon/group_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kMemoryPrefixes[] = {"/dev/shm/hooke-", "/tmp/hooke-"};

absl::Status MakePrivateFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot make the folder ", path, ": ", error.message()));
}

absl::StatusOr<std::string> MakeMemoryFolder() {
  for (absl::string_view prefix : kMemoryPrefixes) {
    std::string path = absl::StrCat(prefix, "XXXXXX");
    if (mkdtemp(path.data()) != nullptr) return path;
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot make a folder in /dev/shm or /tmp: ", strerror(errno)));
}

// Removes a group's folder and the folder to which its link "memory" points. The latter is removed only if it has one
// of our prefixes and our owner.
void RemoveGroup(const fs::path& path) {
  std::error_code error;
  const std::string memory = fs::read_symlink(path / "memory", error).string();
  for (absl::string_view prefix : kMemoryPrefixes) {
    const absl::string_view name = absl::string_view(memory).substr(std::min(memory.size(), prefix.size()));
    struct stat info;
    if (absl::StartsWith(memory, prefix) && !absl::StrContains(name, "/") && lstat(memory.c_str(), &info) == 0 &&
        info.st_uid == geteuid()) {
      fs::remove_all(memory, error);
    }
  }
  fs::remove_all(path, error);
}

absl::Status Write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerFolder>> WorkerFolder::Open(const std::string& path) {
  if (absl::Status status = MakePrivateFolder(path + "/groups"); !status.ok()) return status;
  const std::string lock_path = path + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return absl::FailedPreconditionError(absl::StrCat("cannot open ", lock_path, ": ", strerror(errno)));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::FailedPreconditionError(
        absl::StrCat("the state folder ", path, " is in use by another hooke-worker: choose another --state-dir"));
  }
  std::unique_ptr<WorkerFolder> folder(new WorkerFolder(path, lock));
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder->groups(), error)) RemoveGroup(entry.path());
  return folder;
}

WorkerFolder::~WorkerFolder() { close(lock_); }

absl::StatusOr<std::unique_ptr<GroupFolder>> GroupFolder::Make(const std::string& groups, absl::string_view name) {
  const std::string path = absl::StrCat(groups, "/", name);
  RemoveGroup(path);
  if (absl::Status status = MakePrivateFolder(path); !status.ok()) return status;
  absl::StatusOr<std::string> memory_path = MakeMemoryFolder();
  if (!memory_path.ok()) return memory_path.status();
  std::unique_ptr<GroupFolder> folder(new GroupFolder(path, *memory_path));
  std::error_code error;
  fs::create_symlink(*memory_path, path + "/memory", error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot link ", path, "/memory: ", error.message()));
  if (absl::Status status = CheckSocketPath(folder->socket()); !status.ok()) return status;
  return folder;
}

GroupFolder::~GroupFolder() {
  std::error_code error;
  fs::remove_all(memory_path_, error);
  fs::remove_all(path_, error);
}

absl::Status GroupFolder::WriteStartFile(const std::string& bytes) const { return Write(start_file(), bytes); }

absl::Status GroupFolder::WriteCommandFile(const std::string& script) const { return Write(command_file(), script); }

absl::Status GroupFolder::WriteRankScript(const std::string& script) const { return Write(rank_script(), script); }

absl::StatusOr<std::string> GroupFolder::LinkAgent(const std::string& program) const {
  std::string path = memory_path_ + "/remote";
  std::error_code error;
  fs::create_symlink(program, path, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot link ", path, ": ", error.message()));
  return path;
}

absl::Status CheckSocketPath(absl::string_view path) {
  constexpr size_t kBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() <= kBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the unix socket ", path, " has ", path.size(),
                                                 " bytes, the system takes ", kBytesMax, ": use a shorter folder"));
}

}  // namespace hooke
