#include "server/job_files/file_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "job/file_manifest.h"
#include "job/job_refusal.h"

namespace hooke {
namespace {

// A disk gives the smallest file a block, and it has a limited number of files.
constexpr uint64_t kContentBytesMin = 4 << 10;
constexpr char kUploadAgain[] = "; submit the job again, which uploads it again";

absl::Status Refuse(absl::StatusCode code, const std::string& what) {
  return RefusalOf({{"files", what, {"files"}}}, code);
}

}  // namespace

std::string FileStore::NameOf(const std::string& sha256) { return absl::BytesToHexString(sha256); }

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(FileStoreOptions options, absl::Duration now) {
  absl::StatusOr<std::unique_ptr<ContentFolder>> folder = ContentFolder::Open(options.folder);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<std::vector<ContentFolder::Entry>> entries = (*folder)->List();
  if (!entries.ok()) return entries.status();
  std::unique_ptr<FileStore> store(new FileStore(std::move(options), *std::move(folder)));
  absl::MutexLock lock(&store->mutex_);
  for (const ContentFolder::Entry& entry : *entries) {
    const std::string sha256 = Sha256OfHex(entry.name);
    if (sha256.empty()) continue;
    store->stored_[sha256] = {entry.bytes, now, false};
    store->Add(entry.bytes);
  }
  return store;
}

bool FileStore::Keep(const v1::FileContent& content, absl::Duration now) {
  const auto found = stored_.find(content.sha256());
  if (found == stored_.end() || found->second.leaving || found->second.bytes != content.bytes()) return false;
  found->second.asked = now;
  return true;
}

uint64_t FileStore::Counted(uint64_t bytes) { return std::max(bytes, kContentBytesMin); }

void FileStore::Add(uint64_t bytes) {
  bytes_ += bytes;
  counted_ += Counted(bytes);
}

void FileStore::Subtract(uint64_t bytes) {
  bytes_ -= bytes;
  counted_ -= Counted(bytes);
}

absl::Status FileStore::TooManyBytes(uint64_t counted) const {
  return Refuse(absl::StatusCode::kFailedPrecondition,
                absl::StrCat("they need ", BytesText(counted), " more, and the coordinator has ",
                             BytesText(counted_ + reserved_), " of at most ", BytesText(options_.total_bytes_max),
                             " (its --files-total-bytes; each file counts as at least ", BytesText(kContentBytesMin),
                             "); wait until jobs with files have ended, or send less"));
}

absl::Status FileStore::TooManyForJob(uint64_t bytes) const {
  return Refuse(absl::StatusCode::kFailedPrecondition,
                absl::StrCat("they have ", BytesText(bytes), ", and a job may have ", BytesText(options_.job_bytes_max),
                             " (--files-max-bytes of the coordinator); leave large data where the nodes can read it"));
}

absl::StatusOr<std::vector<std::string>> FileStore::FindMissing(absl::Span<const v1::FileContent> contents,
                                                                absl::Duration now) {
  if (contents.size() > kContentsMax) {
    return Refuse(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat("these are ", contents.size(), " contents; at most ", kContentsMax, " are allowed"));
  }
  uint64_t bytes = 0;
  for (const v1::FileContent& content : contents) {
    if (content.sha256().size() != kSha256Bytes || content.bytes() > kFileBytesMax) {
      return absl::InvalidArgumentError("a content has no SHA-256 of 32 bytes, or a size that no file has");
    }
    bytes = std::min(kFileBytesMax, bytes + content.bytes());
  }
  if (bytes > options_.job_bytes_max) return TooManyForJob(bytes);
  std::vector<std::string> missing;
  uint64_t missing_counted = 0;
  std::set<std::string> seen;
  absl::MutexLock lock(&mutex_);
  for (const v1::FileContent& content : contents) {
    if (!seen.insert(content.sha256()).second || Keep(content, now)) continue;
    missing.push_back(content.sha256());
    missing_counted += Counted(content.bytes());
  }
  // A store that has become too small for what it has takes jobs that bring nothing new.
  if (!missing.empty() && counted_ + reserved_ + missing_counted > options_.total_bytes_max)
    return TooManyBytes(missing_counted);
  return missing;
}

absl::Status FileStore::Reserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > options_.job_bytes_max || counted_ + reserved_ + Counted(bytes) > options_.total_bytes_max) {
    return absl::ResourceExhaustedError(TooManyBytes(Counted(bytes)).message());
  }
  reserved_ += Counted(bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileStore::Upload>> FileStore::BeginUpload(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (uploads_.size() >= options_.uploads_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        uploads_.size(), " uploads of files run at once, the most that the coordinator takes: try again later"));
  }
  return std::unique_ptr<Upload>(new Upload(this, uploads_.insert(now)));
}

absl::Duration FileStore::AskedBefore(absl::Duration now) const {
  if (uploads_.empty()) return now - options_.unnamed_for;
  v1::FileSet largest;
  largest.set_bytes(options_.job_bytes_max);
  largest.set_manifest_bytes(kManifestBytesMax);
  return std::max(*uploads_.begin(), now - UploadLimit(largest)) - options_.unnamed_for;
}

absl::StatusOr<v1::FileManifest> FileStore::Manifest(const v1::FileSet& set) {
  const std::string name = NameOf(set.manifest_sha256());
  const absl::StatusOr<std::string> bytes = ReadWhole(folder_->PathOf(name), kManifestBytesMax);
  const absl::Status& status = bytes.status();
  if (absl::IsFailedPrecondition(status)) {
    return absl::UnavailableError(
        absl::StrCat("the coordinator cannot read the manifest of the files, ", name, ": ", status.message()));
  }
  if (bytes.ok() && Sha256Of(*bytes) == set.manifest_sha256()) return ReadManifest(set, *bytes);
  Remove(set.manifest_sha256());
  return absl::DataLossError(absl::StrCat("the coordinator's copy of the manifest of the files, ", name,
                                          absl::IsNotFound(status) ? ", is gone" : ", is damaged", kUploadAgain));
}

absl::Status FileStore::CheckForJob(const v1::FileSet& set, absl::Duration now) {
  if (absl::Status status = CheckFileSet(set); !status.ok()) {
    return Refuse(absl::StatusCode::kInvalidArgument, std::string(status.message()));
  }
  // Paths may share contents, but each group gets a copy for each path.
  const uint64_t bytes = set.bytes() + set.manifest_bytes();
  if (bytes > options_.job_bytes_max) return TooManyForJob(bytes);
  std::vector<v1::FileContent> contents = {ManifestContent(set)};
  bool there;
  {
    absl::MutexLock lock(&mutex_);
    there = Keep(contents[0], now);
  }
  if (there) {
    const absl::StatusOr<v1::FileManifest> manifest = Manifest(set);
    if (absl::IsUnavailable(manifest.status())) return manifest.status();
    if (!manifest.ok()) {
      return Refuse(absl::IsDataLoss(manifest.status()) ? absl::StatusCode::kFailedPrecondition
                                                        : absl::StatusCode::kInvalidArgument,
                    std::string(manifest.status().message()));
    }
    const std::vector<v1::FileContent> files = ContentsOf(*manifest);
    contents.insert(contents.end(), files.begin(), files.end());
  }
  const absl::StatusOr<std::vector<std::string>> missing = FindMissing(contents, now);
  if (!missing.ok()) return missing.status();
  if (missing->empty()) return absl::OkStatus();
  return Refuse(absl::StatusCode::kFailedPrecondition, absl::StrCat("the coordinator does not have ", missing->size(),
                                                                    " of their contents; upload them first, "
                                                                    "as `hooke submit` does"));
}

absl::Status FileStore::Send(const v1::FileSet& set, absl::Span<const std::string> sha256,
                             const std::function<absl::Status(const v1::FileChunk&)>& send) {
  const absl::StatusOr<v1::FileManifest> manifest = Manifest(set);
  if (!manifest.ok()) return manifest.status();
  std::map<std::string, v1::FileContent> contents = {{set.manifest_sha256(), ManifestContent(set)}};
  for (v1::FileContent& content : ContentsOf(*manifest)) contents[content.sha256()] = std::move(content);
  for (const std::string& digest : sha256) {
    const auto found = contents.find(digest);
    if (found == contents.end()) return absl::NotFoundError("the job's files do not have this content");
    absl::Status send_status;
    const absl::Status status = SendFile(folder_->PathOf(NameOf(digest)), found->second,
                                         [&](const v1::FileChunk& chunk) { return send_status = send(chunk); });
    if (!send_status.ok()) return send_status;
    if (status.ok()) continue;
    Remove(digest);
    return absl::DataLossError(absl::StrCat("the coordinator's copy of a file, ", NameOf(digest),
                                            ", is damaged: ", status.message(), kUploadAgain));
  }
  return absl::OkStatus();
}

void FileStore::Remove(const std::string& sha256) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = stored_.find(sha256);
    if (found == stored_.end() || found->second.leaving) return;
    found->second.leaving = true;
  }
  RemoveLeaving(sha256);
}

uint64_t FileStore::RemoveLeaving(const std::string& sha256) {
  folder_->Remove(NameOf(sha256));
  absl::MutexLock lock(&mutex_);
  const uint64_t bytes = stored_.at(sha256).bytes;
  Subtract(bytes);
  stored_.erase(sha256);
  removed_.SignalAll();
  return bytes;
}

FileStore::Freed FileStore::FreeUnnamed(absl::Span<const v1::FileSet> sets, absl::Duration now) {
  Freed freed;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration asked_before = AskedBefore(now);
    if (std::none_of(stored_.begin(), stored_.end(),
                     [asked_before](const auto& stored) { return stored.second.asked <= asked_before; })) {
      return freed;
    }
  }
  std::set<std::string> named;
  for (const v1::FileSet& set : sets) {
    if (!named.insert(set.manifest_sha256()).second) continue;
    const absl::StatusOr<v1::FileManifest> manifest = Manifest(set);
    if (!manifest.ok()) freed.status = manifest.status();
    // Without its manifest a job's groups get no file, so its contents are of no use to it.
    if (absl::IsDataLoss(manifest.status())) continue;
    if (!manifest.ok()) return freed;
    for (const v1::FileContent& content : ContentsOf(*manifest)) named.insert(content.sha256());
  }
  std::vector<std::string> unnamed;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration asked_before = AskedBefore(now);
    for (auto& [sha256, stored] : stored_) {
      if (named.count(sha256) > 0) {
        stored.asked = now;
        continue;
      }
      if (stored.leaving || stored.asked > asked_before) continue;
      stored.leaving = true;
      unnamed.push_back(sha256);
    }
  }
  for (const std::string& sha256 : unnamed) freed.bytes += RemoveLeaving(sha256);
  return freed;
}

uint64_t FileStore::bytes() {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace hooke
