#include "client/files/collect_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "job/visible_text.h"
#include "wire/file_chunks.h"
#include "wire/sha256.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " ", what));
}

// False: somebody wrote to the file between `a` and `b`.
bool IsUnchanged(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

class Collector {
 public:
  explicit Collector(fs::path folder) : folder_(std::move(folder)) {}

  // Finds the files of a path that the job names.
  absl::Status Find(const std::string& path) {
    struct stat info;
    if (absl::Status status = Look(path, info); !status.ok()) return status;
    return S_ISDIR(info.st_mode) ? FindIn(path == "." ? "" : path) : AddFile(path, info);
  }

  absl::StatusOr<CollectedFiles> Read() {
    CollectedFiles files;
    v1::FileManifest manifest;
    std::set<std::string> seen;
    for (const auto& [path, is_file] : found_) {
      v1::FileEntry& entry = *manifest.add_entries();
      entry.set_path(path);
      entry.set_folder(!is_file);
      if (!is_file) continue;
      if (absl::Status status = ReadOne(path, entry); !status.ok()) return status;
      if (!seen.insert(entry.sha256()).second) continue;
      files.contents.emplace_back();
      files.contents.back().content.set_sha256(entry.sha256());
      files.contents.back().content.set_bytes(entry.bytes());
      files.contents.back().path = (folder_ / path).string();
    }
    if (absl::Status status = CheckManifest(manifest); !status.ok()) return status;
    files.manifest = ManifestBytes(manifest);
    files.set = FileSetOf(manifest);
    return files;
  }

 private:
  absl::Status Look(const std::string& path, struct stat& info) const {
    if (stat((folder_ / path).c_str(), &info) == 0) return absl::OkStatus();
    const int error = errno;
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(folder_ / path, ignored))) {
      return Wrong(path, absl::StrCat("is a link that leads to no file: ", std::strerror(error)));
    }
    if (error != ENOENT && error != ENOTDIR) return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(error)));
    const bool pattern = path.find_first_of("*?[") != path.npos;
    return Wrong(path, absl::StrCat("is not there in ", Escaped(folder_.string()),
                                    pattern ? "; patterns are not expanded: name the folder" : ""));
  }

  absl::Status AddFile(const std::string& path, const struct stat& info) {
    if (!S_ISREG(info.st_mode)) return Wrong(path, "is no plain file, but a device, pipe or socket; leave it out");
    return Add(path, true);
  }

  absl::Status Add(const std::string& path, bool is_file) {
    if (absl::Status status = CheckFilePath(path); !status.ok()) return Wrong(path, status.message());
    found_.emplace(path, is_file);
    if (found_.size() <= kFilesMax) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("these are more than ", kFilesMax, " files; leave some out, or pack them into one archive"));
  }

  // Finds the files in a folder and below it. `path` is "" for the whole of `folder_`. The recursion ends, because
  // links to folders are refused and the kernel takes paths of at most 4096 bytes.
  absl::Status FindIn(const std::string& path) {
    std::error_code error;
    bool empty = true;
    for (fs::directory_iterator it(folder_ / path, error), end; !error && it != end; it.increment(error)) {
      empty = false;
      const std::string name = it->path().filename().string();
      const std::string inner = path.empty() ? name : absl::StrCat(path, "/", name);
      struct stat info;
      if (absl::Status status = Look(inner, info); !status.ok()) return status;
      std::error_code ignored;
      if (S_ISDIR(info.st_mode) && fs::is_symlink(fs::symlink_status(it->path(), ignored))) {
        return Wrong(inner, "is a link to a folder inside a folder; put the folder itself there, or leave it out");
      }
      absl::Status status = S_ISDIR(info.st_mode) ? FindIn(inner) : AddFile(inner, info);
      if (!status.ok()) return status;
    }
    if (error) return Wrong(path.empty() ? "." : path, absl::StrCat("cannot be read: ", error.message()));
    if (!empty) return absl::OkStatus();
    if (path.empty()) return absl::InvalidArgumentError("\".\" is an empty folder");
    return Add(path, false);
  }

  absl::Status ReadOne(const std::string& path, v1::FileEntry& entry) const {
    const std::string file = (folder_ / path).string();
    struct stat before;
    if (absl::Status status = Look(path, before); !status.ok()) return status;
    Sha256 sum;
    uint64_t bytes = 0;
    const absl::Status status = ReadPieces(file, [&](absl::string_view piece) {
      sum.Add(piece);
      bytes += piece.size();
      // A file that grows as fast as it is read would never end.
      return bytes > static_cast<uint64_t>(before.st_size) ? absl::AbortedError("") : absl::OkStatus();
    });
    struct stat after;
    if (absl::IsAborted(status) || stat(file.c_str(), &after) != 0 || !IsUnchanged(before, after) ||
        bytes != static_cast<uint64_t>(before.st_size)) {
      return Wrong(path, "changes while it is read; submit the job again when nobody writes to it");
    }
    if (!status.ok()) return Wrong(path, absl::StrCat("is not sent: ", status.message()));
    entry.set_sha256(sum.Finish());
    entry.set_bytes(bytes);
    entry.set_executable((before.st_mode & S_IXUSR) != 0);
    return absl::OkStatus();
  }

  const fs::path folder_;
  std::map<std::string, bool> found_;  // The paths found. True: a file. False: an empty folder.
};

}  // namespace

absl::StatusOr<CollectedFiles> CollectFiles(const std::string& folder, const std::vector<std::string>& paths) {
  Collector collector{fs::path(folder)};
  for (const std::string& path : paths) {
    if (absl::Status status = collector.Find(path); !status.ok()) return status;
  }
  return collector.Read();
}

}  // namespace hooke
