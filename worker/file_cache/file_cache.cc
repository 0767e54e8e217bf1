#include "worker/file_cache/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "files/write_bytes.h"
#include "job/file_manifest.h"
#include "wire/file_chunks.h"
#include "worker/file_cache/arriving_contents.h"

namespace hooke {
namespace {

// More than kFetchStillMax: a fetch that stands still fails before the groups that wait for its end do.
constexpr absl::Duration kTurnStillMax = absl::Minutes(2);
// A second try fetches damaged files again. If the third one finds damaged files, too, then the disk is broken.
constexpr int kTries = 3;

std::string NameOf(const std::string& sha256) { return absl::BytesToHexString(sha256); }

absl::Status CannotWrite(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot make ", path, ": ", strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// Makes the folder in which `path` lies inside `into`, and that folder's parents.
absl::Status MakeFolder(const std::string& into, absl::string_view path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string folder = absl::StrCat(into, "/", path.substr(0, slash));
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return CannotWrite(folder, errno);
  }
  return absl::OkStatus();
}

// Copies the file `from` into a new file `to`, and calls `moved` for each piece. DATA_LOSS: `from` cannot be read, or
// does not have the entry's content.
absl::Status CopyFile(const std::string& from, const v1::FileEntry& entry, const std::string& to,
                      const std::function<void()>& moved) {
  const int file =
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry.executable() ? 0700 : 0600);
  if (file < 0) return CannotWrite(to, errno);
  auto close_file = absl::MakeCleanup([file] { close(file); });
  Sha256 sum;
  absl::Status written;
  const absl::Status read = ReadPieces(from, [&](absl::string_view piece) {
    moved();
    sum.Add(piece);
    if (const int error = WriteAll(file, piece); error != 0) written = CannotWrite(to, error);
    return written;
  });
  if (!written.ok()) return written;
  if (!read.ok()) return absl::DataLossError(read.message());
  // On a network file system only close may say that the disk is full.
  std::move(close_file).Cancel();
  if (close(file) != 0) return CannotWrite(to, errno);
  return sum.Finish() == entry.sha256() ? absl::OkStatus() : absl::DataLossError("it is damaged");
}

uint64_t BytesOf(const std::vector<v1::FileContent>& contents) {
  uint64_t bytes = 0;
  for (const v1::FileContent& content : contents) bytes += content.bytes();
  return bytes;
}

// Bytes that are still to be copied.
uint64_t BytesToCopy(const v1::FileManifest& manifest, const std::string& into, const std::set<std::string>& copied) {
  uint64_t bytes = 0;
  for (const v1::FileEntry& entry : manifest.entries()) {
    if (copied.count(absl::StrCat(into, "/", entry.path())) == 0) bytes += entry.bytes();
  }
  return bytes;
}

}  // namespace

FileCache::FileCache(uint64_t bytes_max, std::unique_ptr<ContentFolder> folder, std::function<absl::Time()> clock)
    : bytes_max_(bytes_max), folder_(std::move(folder)), turns_(kTurnStillMax, std::move(clock)) {}

FileCache::Use::~Use() {
  absl::MutexLock lock(&cache_->mutex_);
  for (const std::string& sha256 : sha256_) {
    const auto found = cache_->uses_.find(sha256);
    if (--found->second == 0) cache_->uses_.erase(found);
  }
}

absl::StatusOr<std::unique_ptr<FileCache>> FileCache::Open(const std::string& folder, uint64_t bytes_max,
                                                           std::function<absl::Time()> clock) {
  absl::StatusOr<std::unique_ptr<ContentFolder>> contents = ContentFolder::Open(folder);
  if (!contents.ok()) return contents.status();
  absl::StatusOr<std::vector<ContentFolder::Entry>> entries = (*contents)->List();
  if (!entries.ok()) return entries.status();
  // Only the wall clock knows in what order earlier workers used the files.
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  std::unique_ptr<FileCache> cache(new FileCache(bytes_max, *std::move(contents), std::move(clock)));
  {
    absl::MutexLock lock(&cache->mutex_);
    for (const ContentFolder::Entry& entry : *entries) {
      const std::string sha256 = Sha256OfHex(entry.name);
      if (!sha256.empty()) cache->cached_[sha256] = {entry.bytes, ++cache->uses_seen_};
    }
  }
  // The worker may have been started with less room than before.
  if (absl::Status status = cache->MakeRoom(0); !status.ok()) return status;
  return cache;
}

absl::StatusOr<FileCache::Made> FileCache::Make(const v1::FileSet& set, const std::string& into,
                                                const FetchContents& fetch,
                                                const std::function<absl::Status()>& stopped) {
  if (absl::Status status = CheckFileSet(set); !status.ok()) return status;
  if (absl::Status status = turns_.Take(stopped); !status.ok()) return status;
  const auto end_turn = absl::MakeCleanup([this] { turns_.End(); });
  return MakeInTurn(set, into, fetch, stopped);
}

absl::StatusOr<FileCache::Made> FileCache::MakeInTurn(const v1::FileSet& set, const std::string& into,
                                                      const FetchContents& fetch,
                                                      const std::function<absl::Status()>& stopped) {
  Made made;
  const std::unique_ptr<Use> use_of_manifest = StartUse({ManifestContent(set)});
  const absl::StatusOr<v1::FileManifest> manifest = GetManifest(set, fetch, made);
  if (!manifest.ok()) return manifest.status();
  const std::vector<v1::FileContent> contents = ContentsOf(*manifest);
  std::vector<v1::FileContent> used = contents;
  used.push_back(ManifestContent(set));
  // If this check fails, the files can never fit, whatever else the cache holds.
  if (absl::Status status = CheckFits(BytesOf(used), bytes_max_); !status.ok()) return status;
  made.use = StartUse(used);
  made.contents = static_cast<uint32_t>(contents.size());
  std::set<std::string> copied;
  for (int tries = 0; tries < kTries;) {
    if (absl::Status status = FetchMissing(contents, fetch, made); !status.ok()) return status;
    const absl::StatusOr<bool> all = CopyFiles(*manifest, into, stopped, copied);
    if (all.ok() && *all) return made;
    if (all.ok()) {
      ++tries;
      continue;
    }
    if (!absl::IsResourceExhausted(all.status()) || !stopped().ok()) return all.status();
    // The group's folder is often on the disk of the cache.
    absl::Status room = MakeRoomOnDisk(BytesToCopy(*manifest, into, copied), all.status());
    if (!room.ok()) return room;
  }
  return absl::UnavailableError("files of the job that this worker has just fetched are damaged: see to its disk");
}

absl::StatusOr<bool> FileCache::CopyFiles(const v1::FileManifest& manifest, const std::string& into,
                                          const std::function<absl::Status()>& stopped, std::set<std::string>& copied) {
  bool damaged = false;
  const absl::Status status = MakeFiles(manifest, into, [&](const v1::FileEntry& entry, const std::string& path) {
    if (copied.count(path) > 0) return absl::OkStatus();
    if (absl::Status stop = stopped(); !stop.ok()) return stop;
    absl::Status copy = CopyFile(folder_->PathOf(NameOf(entry.sha256())), entry, path, [this] { turns_.Move(); });
    if (copy.ok()) {
      copied.insert(path);
      return copy;
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return CannotWrite(path, errno);
    if (!absl::IsDataLoss(copy)) return copy;
    damaged = true;
    Remove(entry.sha256());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return !damaged;
}

absl::StatusOr<v1::FileManifest> FileCache::GetManifest(const v1::FileSet& set, const FetchContents& fetch,
                                                        Made& made) {
  absl::StatusOr<v1::FileManifest> manifest;
  for (int i = 0; i < kTries; ++i) {
    if (absl::Status status = FetchMissing({ManifestContent(set)}, fetch, made); !status.ok()) return status;
    made.fetched = 0;  // The manifest is no file of the job.
    const absl::StatusOr<std::string> bytes =
        ReadWhole(folder_->PathOf(NameOf(set.manifest_sha256())), kManifestBytesMax);
    if (bytes.ok() && Sha256Of(*bytes) == set.manifest_sha256()) return ReadManifest(set, *bytes);
    Remove(set.manifest_sha256());
  }
  return absl::UnavailableError("the list of the job's files is damaged on this worker: see to its disk");
}

absl::Status FileCache::FetchMissing(const std::vector<v1::FileContent>& contents, const FetchContents& fetch,
                                     Made& made) {
  while (true) {
    const std::vector<v1::FileContent> missing = FindMissing(contents);
    if (missing.empty()) return absl::OkStatus();
    if (absl::Status status = MakeRoom(BytesOf(missing)); !status.ok()) return status;
    ArrivingContents arriving(*folder_, missing, [&](const v1::FileContent& content) {
      ++made.fetched;
      made.fetched_bytes += content.bytes();
      absl::MutexLock lock(&mutex_);
      cached_[content.sha256()] = {content.bytes(), ++uses_seen_};
    });
    std::vector<std::string> sha256;
    sha256.reserve(missing.size());
    for (const v1::FileContent& content : missing) sha256.push_back(content.sha256());
    absl::Status status = fetch(sha256, [&](const v1::FileChunk& chunk) {
      turns_.Move();
      return arriving.Take(chunk);
    });
    if (status.ok()) return arriving.CheckEnd();
    if (!arriving.disk_full()) return status;
    if (absl::Status room = MakeRoomOnDisk(arriving.bytes_left(), status); !room.ok()) return room;
  }
}

std::vector<v1::FileContent> FileCache::FindMissing(const std::vector<v1::FileContent>& contents) {
  std::vector<v1::FileContent> missing;
  {
    absl::MutexLock lock(&mutex_);
    for (const v1::FileContent& content : contents) {
      const auto found = cached_.find(content.sha256());
      if (found == cached_.end()) {
        missing.push_back(content);
      } else {
        found->second.used = ++uses_seen_;
      }
    }
  }
  for (const v1::FileContent& content : contents) folder_->Use(NameOf(content.sha256()));
  return missing;
}

std::vector<CachedFile> FileCache::Files() {
  std::vector<CachedFile> files;
  absl::MutexLock lock(&mutex_);
  for (const auto& [sha256, cached] : cached_) {
    files.push_back({sha256, cached.bytes, cached.used, uses_.count(sha256) > 0});
  }
  return files;
}

uint64_t FileCache::bytes() {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& [sha256, cached] : cached_) bytes += cached.bytes;
  return bytes;
}

absl::Status FileCache::MakeRoom(uint64_t bytes) {
  const absl::StatusOr<std::vector<std::string>> leave = ChooseEvictions(Files(), bytes, bytes_max_);
  if (!leave.ok()) return leave.status();
  for (const std::string& sha256 : *leave) Remove(sha256);
  return absl::OkStatus();
}

absl::Status FileCache::MakeRoomOnDisk(uint64_t bytes, const absl::Status& full) {
  const std::vector<std::string> leave = ChooseForDisk(Files(), bytes);
  for (const std::string& sha256 : leave) Remove(sha256);
  if (!leave.empty()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the disk is full: ", BytesText(bytes), " more are needed, and the cache of files, ", folder_->path(),
      ", has nothing that no running group uses: make room on that disk, or start hooke-worker with a --state-dir on a "
      "larger one (",
      full.message(), ")"));
}

std::unique_ptr<FileCache::Use> FileCache::StartUse(const std::vector<v1::FileContent>& contents) {
  std::vector<std::string> used;
  absl::MutexLock lock(&mutex_);
  for (const v1::FileContent& content : contents) {
    ++uses_[content.sha256()];
    used.push_back(content.sha256());
  }
  return std::make_unique<Use>(this, std::move(used));
}

void FileCache::Remove(const std::string& sha256) {
  {
    absl::MutexLock lock(&mutex_);
    cached_.erase(sha256);
  }
  folder_->Remove(NameOf(sha256));
}

absl::Status MakeFiles(const v1::FileManifest& manifest, const std::string& into,
                       const std::function<absl::Status(const v1::FileEntry&, const std::string& path)>& copy) {
  if (mkdir(into.c_str(), 0700) != 0 && errno != EEXIST) return CannotWrite(into, errno);
  for (const v1::FileEntry& entry : manifest.entries()) {
    if (absl::Status status = CheckFilePath(entry.path()); !status.ok()) return status;
    if (absl::Status status = MakeFolder(into, entry.path()); !status.ok()) return status;
    const std::string path = absl::StrCat(into, "/", entry.path());
    if (entry.folder()) {
      if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return CannotWrite(path, errno);
    } else if (absl::Status status = copy(entry, path); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace hooke
