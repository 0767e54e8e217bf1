#ifndef HOOKE_SERVER_JOB_FILES_FILE_STORE_H_
#define HOOKE_SERVER_JOB_FILES_FILE_STORE_H_

// The coordinator's store of the files of jobs. Each content is one file of a ContentFolder, named by its SHA-256. So
// files that many jobs have are stored once.
//
// A content stays while the manifest of an unfinished job names it. It also stays for `unnamed_for` after it was
// uploaded, after somebody asked for it, and after such a job was last seen. That time lets a client first upload and
// then submit. While an upload runs at a fair speed, the time does not pass.
//
// Thread-safe. The calls do I/O, without a lock held. The caller reads the steady clock and passes `now`.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clocks/steady_condition.h"
#include "files/content_folder.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"
#include "wire/file_chunks.h"

namespace hooke {

struct FileStoreOptions {
  std::string folder;
  uint64_t job_bytes_max = uint64_t{1} << 30;  // Bytes of all files of one job.
  // Bytes of all contents, with those that are being uploaded. Each counts as at least 4 KiB, so this bounds their
  // number, too.
  uint64_t total_bytes_max = uint64_t{10} << 30;
  size_t uploads_max = 16;  // Uploads at a time.
  absl::Duration unnamed_for = absl::Minutes(10);
};

class FileStore {
 public:
  // Finds the contents that earlier processes stored. Errors are those of ContentFolder::Open.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(FileStoreOptions options, absl::Duration now);

  // Returns the SHA-256 of those contents that are not stored. A content counts as often as it is named. Refuses too
  // many or too large files: FAILED_PRECONDITION, in the form of RefusalOf (job/job_refusal.h) for the key `files`.
  // INVALID_ARGUMENT: a content has no SHA-256, or a size that no file has.
  absl::StatusOr<std::vector<std::string>> FindMissing(absl::Span<const v1::FileContent> contents, absl::Duration now);

  // One stream of contents from a client. Used by one thread. Its destructor drops what is not complete.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    // A content is stored, durably, once its last chunk was taken. Errors are those of ChunkCheck::Take and of
    // NewContent. RESOURCE_EXHAUSTED: the content would not fit. INVALID_ARGUMENT: more than kContentsMax came.
    // UNAVAILABLE: the disk does not answer. After an error nothing more may be taken.
    absl::Status Take(const v1::FileChunk& chunk, absl::Duration now);
    // Returns the number of contents that came. INVALID_ARGUMENT: the stream ended inside a content.
    absl::StatusOr<uint32_t> Finish() const;

   private:
    friend class FileStore;
    Upload(FileStore* store, std::multiset<absl::Duration>::iterator begun) : store_(store), begun_(begun) {}
    absl::Status Begin(absl::Duration now);
    void Drop();

    FileStore* const store_;
    const std::multiset<absl::Duration>::iterator begun_;  // This upload's element in FileStore::uploads_.
    ChunkCheck check_;
    std::unique_ptr<NewContent> content_;  // Null: the content that is coming is stored already.
    uint64_t reserved_ = 0;                // Counted() of the content that is coming, which FileStore::reserved_ has.
    uint32_t contents_ = 0;
  };
  // RESOURCE_EXHAUSTED: too many uploads run. The store must outlive the upload.
  absl::StatusOr<std::unique_ptr<Upload>> BeginUpload(absl::Duration now);

  // Checks before a job is stored that its manifest is valid and that all contents are here. Errors are refusals for
  // the key `files`: INVALID_ARGUMENT, or FAILED_PRECONDITION if the files are too large, contents are missing, or the
  // manifest is damaged. UNAVAILABLE: the manifest cannot be read now.
  absl::Status CheckForJob(const v1::FileSet& set, absl::Duration now);

  // Sends contents of a job's files. NOT_FOUND: the job's manifest does not name one of them. DATA_LOSS: a stored
  // content is gone or damaged; it is removed, so that the next submission brings it again. UNAVAILABLE: the manifest
  // cannot be read now. Other errors are those of `send`.
  absl::Status Send(const v1::FileSet& set, absl::Span<const std::string> sha256,
                    const std::function<absl::Status(const v1::FileChunk&)>& send);

  struct Freed {
    uint64_t bytes = 0;
    // DATA_LOSS: a manifest is gone or damaged, and its contents count as unnamed. Another error: a manifest cannot be
    // read, and nothing was freed.
    absl::Status status;
  };
  // Frees the contents that neither these sets' manifests name nor `unnamed_for` keeps. If `unnamed_for` keeps all
  // contents, no manifest is read. So FreeUnnamed may be called often.
  Freed FreeUnnamed(absl::Span<const v1::FileSet> sets, absl::Duration now);

  uint64_t bytes();  // Of all stored contents.

 private:
  struct Stored {
    uint64_t bytes = 0;
    absl::Duration asked;  // When somebody last uploaded it or asked for it, or a job was last seen to name it.
    bool leaving = false;  // Its file is being removed.
  };

  FileStore(FileStoreOptions options, std::unique_ptr<ContentFolder> folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  // Returns whether the content is here with this length. If so, notes that somebody has asked for it.
  bool Keep(const v1::FileContent& content, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a time. Contents that were last asked for at that time or earlier, and that no job names, may be freed.
  // An upload keeps the contents that it has brought or found, unless it takes longer than UploadLimit.
  absl::Duration AskedBefore(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Reserve(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a content's bytes into `bytes_` and `counted_`, or out of them.
  void Add(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Subtract(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how many bytes such a content counts as.
  static uint64_t Counted(uint64_t bytes);
  absl::Status TooManyForJob(uint64_t bytes) const;
  absl::Status TooManyBytes(uint64_t counted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes a content that was marked as leaving. Returns its bytes.
  uint64_t RemoveLeaving(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mutex_);
  // DATA_LOSS: the manifest is gone or damaged, and has been removed. UNAVAILABLE: it cannot be read now.
  // INVALID_ARGUMENT: it is no manifest of this set.
  absl::StatusOr<v1::FileManifest> Manifest(const v1::FileSet& set) ABSL_LOCKS_EXCLUDED(mutex_);

  static std::string NameOf(const std::string& sha256);

  const FileStoreOptions options_;
  const std::unique_ptr<ContentFolder> folder_;
  absl::Mutex mutex_;
  SteadyCondition removed_;                                       // A content has left `stored_`.
  std::map<std::string, Stored> stored_ ABSL_GUARDED_BY(mutex_);  // By SHA-256.
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;                    // The bytes of all contents in `stored_`.
  uint64_t counted_ ABSL_GUARDED_BY(mutex_) = 0;                  // The sum of Counted() over `stored_`.
  // The sum of Counted() over the contents that are being uploaded.
  uint64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::multiset<absl::Duration> uploads_ ABSL_GUARDED_BY(mutex_);  // When the running uploads began.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_JOB_FILES_FILE_STORE_H_
