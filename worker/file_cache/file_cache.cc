#include "worker/file_cache/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "files/write_bytes.h"
#include "job/file_manifest.h"
#include "wire/file_chunks.h"
#include "worker/file_cache/choose_evictions.h"

namespace hooke {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(200);
// A second try fetches damaged files again. If the third one finds damaged files, too, then the disk is broken.
constexpr int kTries = 3;

std::string NameOf(const std::string& sha256) { return absl::BytesToHexString(sha256); }

absl::Status CannotWrite(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot make ", path, ": ", strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// Makes the folder of a path inside `into`, and those around it.
absl::Status MakeFolder(const std::string& into, absl::string_view path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string folder = absl::StrCat(into, "/", path.substr(0, slash));
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return CannotWrite(folder, errno);
  }
  return absl::OkStatus();
}

// Copies the file `from` into a new file `to`. DATA_LOSS: `from` cannot be read, or does not have the entry's content.
absl::Status CopyFile(const std::string& from, const v1::FileEntry& entry, const std::string& to) {
  const int file =
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry.executable() ? 0700 : 0600);
  if (file < 0) return CannotWrite(to, errno);
  auto close_file = absl::MakeCleanup([file] { close(file); });
  Sha256 sum;
  absl::Status written;
  const absl::Status read = ReadPieces(from, [&](absl::string_view piece) {
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

// Another start may succeed where a peer sent something else than what was asked for.
absl::Status TryAgain(const absl::Status& status) {
  const bool peer = absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
  return peer ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

FileCache::Use::~Use() {
  absl::MutexLock lock(&cache_->mutex_);
  for (const std::string& sha256 : sha256_) {
    const auto found = cache_->uses_.find(sha256);
    if (--found->second == 0) cache_->uses_.erase(found);
  }
}

absl::StatusOr<std::unique_ptr<FileCache>> FileCache::Open(const std::string& folder, uint64_t bytes_max) {
  absl::StatusOr<std::unique_ptr<ContentFolder>> contents = ContentFolder::Open(folder);
  if (!contents.ok()) return contents.status();
  const absl::StatusOr<std::vector<ContentFolder::Entry>> entries = (*contents)->List();
  if (!entries.ok()) return entries.status();
  std::unique_ptr<FileCache> cache(new FileCache(bytes_max, *std::move(contents)));
  {
    absl::MutexLock lock(&cache->mutex_);
    for (const ContentFolder::Entry& entry : *entries) {
      const std::string sha256 = Sha256OfHex(entry.name);
      if (!sha256.empty()) cache->cached_[sha256] = {entry.bytes, entry.used};
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
  if (absl::Status status = TakeTurn(stopped); !status.ok()) return status;
  const auto end_turn = absl::MakeCleanup([this] { EndTurn(); });
  return MakeInTurn(set, into, fetch, stopped);
}

absl::Status FileCache::TakeTurn(const std::function<absl::Status()>& stopped) {
  const absl::Time deadline = absl::Now() + kFetchTurn;
  while (absl::Now() < deadline) {
    if (absl::Status status = stopped(); !status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !taken_; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&free), kAskEvery)) continue;
    taken_ = true;
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("other groups have fetched files for ", absl::FormatDuration(kFetchTurn)));
}

void FileCache::EndTurn() {
  absl::MutexLock lock(&mutex_);
  taken_ = false;
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
  made.use = StartUse(used);
  made.contents = static_cast<uint32_t>(contents.size());
  std::set<std::string> copied;  // Paths of an earlier try.
  for (int i = 0; i < kTries; ++i) {
    if (absl::Status status = FetchMissing(contents, fetch, made); !status.ok()) return status;
    bool damaged = false;
    const absl::Status status = MakeFiles(*manifest, into, [&](const v1::FileEntry& entry, const std::string& path) {
      if (copied.count(path) > 0) return absl::OkStatus();
      if (absl::Status stop = stopped(); !stop.ok()) return stop;
      absl::Status copy = CopyFile(folder_->PathOf(NameOf(entry.sha256())), entry, path);
      if (copy.ok()) copied.insert(path);
      if (!absl::IsDataLoss(copy)) return copy;
      damaged = true;
      Remove(entry.sha256());
      return unlink(path.c_str()) == 0 ? absl::OkStatus() : CannotWrite(path, errno);
    });
    if (!status.ok()) return status;
    if (!damaged) return made;
  }
  return absl::UnavailableError("files of the job that this worker has just fetched are damaged: see to its disk");
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
  std::vector<std::string> missing;
  uint64_t bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const v1::FileContent& content : contents) {
      const auto found = cached_.find(content.sha256());
      if (found != cached_.end()) {
        found->second.used = absl::Now();
        continue;
      }
      missing.push_back(content.sha256());
      bytes += content.bytes();
    }
  }
  for (const v1::FileContent& content : contents) folder_->Use(NameOf(content.sha256()));
  if (missing.empty()) return absl::OkStatus();
  if (absl::Status status = MakeRoom(bytes); !status.ok()) return status;
  ChunkCheck check;
  std::unique_ptr<NewContent> file;
  size_t next = 0;
  absl::Status status = fetch(missing, [&](const v1::FileChunk& chunk) -> absl::Status {
    const absl::StatusOr<ChunkCheck::Step> step = check.Take(chunk);
    if (!step.ok()) return TryAgain(step.status());
    if (step->begins) {
      if (next >= missing.size() || check.content().sha256() != missing[next] || check.content().bytes() > bytes) {
        return absl::UnavailableError("the coordinator sent another file than this worker asked for");
      }
      bytes -= check.content().bytes();
      absl::StatusOr<std::unique_ptr<NewContent>> begun = folder_->Begin();
      if (!begun.ok()) return begun.status();
      file = *std::move(begun);
    }
    if (absl::Status written = file->Append(chunk.data()); !written.ok()) return written;
    if (!step->ends) return absl::OkStatus();
    if (absl::Status put = file->Publish(NameOf(missing[next]), Durable::kNo); !put.ok()) return put;
    file.reset();
    ++next;
    ++made.fetched;
    made.fetched_bytes += check.content().bytes();
    absl::MutexLock lock(&mutex_);
    cached_[check.content().sha256()] = {check.content().bytes(), absl::Now()};
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return next == missing.size() ? absl::OkStatus()
                                : absl::UnavailableError("the coordinator sent fewer files than this worker asked for");
}

absl::Status FileCache::MakeRoom(uint64_t bytes) {
  std::vector<CachedFile> files;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [sha256, cached] : cached_) {
      files.push_back({sha256, cached.bytes, cached.used, uses_.count(sha256) > 0});
    }
  }
  const absl::StatusOr<std::vector<std::string>> leave = ChooseEvictions(std::move(files), bytes, bytes_max_);
  if (!leave.ok()) return leave.status();
  for (const std::string& sha256 : *leave) Remove(sha256);
  return absl::OkStatus();
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
