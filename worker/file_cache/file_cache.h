#ifndef HOOKE_WORKER_FILE_CACHE_FILE_CACHE_H_
#define HOOKE_WORKER_FILE_CACHE_FILE_CACHE_H_

// The files of jobs on a node. Each content is one file of a ContentFolder, named by its SHA-256. All groups of this
// worker share the file, and it survives a restart of the worker. If the cache is full, the least recently used files
// leave, but never those of a running group.
//
// A group gets copies, not links: its program may do with them what it likes. Copying checks each SHA-256 again. So a
// cached file that the disk has damaged is noticed, removed and fetched again.
//
// Thread-safe. One Make runs at a time, and the others wait for their turn, so two groups do not fetch the same files.
// They wait as long as the one before goes on.

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
#include "clocks/steady_time.h"
#include "files/content_folder.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"
#include "worker/file_cache/choose_evictions.h"
#include "worker/file_cache/turns.h"

namespace hooke {

// Fetches contents in the order of `sha256`, and passes each chunk to `take`. Returns the error of `take`, or its own.
using FetchContents = std::function<absl::Status(const std::vector<std::string>& sha256,
                                                 const std::function<absl::Status(const v1::FileChunk&)>& take)>;

class FileCache {
 public:
  // `bytes_max`: limit for the bytes of all files. `clock` is steady. Errors are those of ContentFolder::Open.
  static absl::StatusOr<std::unique_ptr<FileCache>> Open(const std::string& folder, uint64_t bytes_max,
                                                         std::function<absl::Time()> clock = SteadyTime);

  // Keeps a group's files in the cache until it is destroyed. The cache must outlive it.
  class Use {
   public:
    Use(FileCache* cache, std::vector<std::string> sha256) : cache_(cache), sha256_(std::move(sha256)) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    FileCache* const cache_;
    const std::vector<std::string> sha256_;
  };

  struct Made {
    std::unique_ptr<Use> use;
    // How many contents were fetched, without the manifest. A content counts once, however many files have it.
    uint32_t fetched = 0;
    uint32_t contents = 0;       // How many different contents all files of the job have.
    uint64_t fetched_bytes = 0;  // Bytes that were fetched, with the manifest.
  };
  // Fetches what the cache lacks, and makes the folder `into`, which must not exist, with copies of the job's files.
  // `stopped` is asked again and again; its error ends the wait and the work. After an error `into` may be incomplete;
  // the caller removes it.
  //
  // If the disk is full, cached files that no group uses leave, and the work goes on.
  //
  // FAILED_PRECONDITION: the files do not fit into the cache. RESOURCE_EXHAUSTED: the disk is full and nothing can
  // leave, or groups that run leave too little room. UNAVAILABLE: what came was not what was asked for, this node's
  // disk damages files, or the groups that came before stand still. INVALID_ARGUMENT: the manifest is wrong. INTERNAL:
  // a file or folder cannot be made. Other errors are those of `fetch` and `stopped`.
  absl::StatusOr<Made> Make(const v1::FileSet& set, const std::string& into, const FetchContents& fetch,
                            const std::function<absl::Status()>& stopped);

  uint64_t bytes();  // Of all cached files.

 private:
  struct Cached {
    uint64_t bytes = 0;
    // The value of `uses_seen_` at its last use. It is not a time, because somebody may set the clock back.
    uint64_t used = 0;
  };

  FileCache(uint64_t bytes_max, std::unique_ptr<ContentFolder> folder, std::function<absl::Time()> clock);

  absl::StatusOr<Made> MakeInTurn(const v1::FileSet& set, const std::string& into, const FetchContents& fetch,
                                  const std::function<absl::Status()>& stopped);
  // Copies the files whose paths are not in `copied`, and adds their paths to it. Returns whether all files are copied;
  // false: some cached files were damaged, and have left the cache.
  absl::StatusOr<bool> CopyFiles(const v1::FileManifest& manifest, const std::string& into,
                                 const std::function<absl::Status()>& stopped, std::set<std::string>& copied);
  absl::StatusOr<v1::FileManifest> GetManifest(const v1::FileSet& set, const FetchContents& fetch, Made& made);
  // Fetches those contents that the cache lacks. Counts them in `made`.
  absl::Status FetchMissing(const std::vector<v1::FileContent>& contents, const FetchContents& fetch, Made& made);
  // Returns the contents that the cache lacks. The others count as used now.
  std::vector<v1::FileContent> FindMissing(const std::vector<v1::FileContent>& contents);
  absl::Status MakeRoom(uint64_t bytes);
  // Lets files leave, after the error `full` of a write to the disk. RESOURCE_EXHAUSTED: none can leave.
  absl::Status MakeRoomOnDisk(uint64_t bytes, const absl::Status& full);
  std::vector<CachedFile> Files();
  // Adds a use to each content. Those that are not cached yet count as used once they are.
  std::unique_ptr<Use> StartUse(const std::vector<v1::FileContent>& contents);
  void Remove(const std::string& sha256);

  const uint64_t bytes_max_;
  const std::unique_ptr<ContentFolder> folder_;
  Turns turns_;
  absl::Mutex mutex_;
  uint64_t uses_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Cached> cached_ ABSL_GUARDED_BY(mutex_);  // By SHA-256.
  std::map<std::string, uint32_t> uses_ ABSL_GUARDED_BY(mutex_);  // Number of uses by SHA-256, never 0.
};

// Makes the folder `into` with the files of a manifest, which must have passed CheckManifest. `copy` writes one content
// to a new file at a path. Nothing is written outside `into`. RESOURCE_EXHAUSTED: the disk is full. INTERNAL: a folder
// cannot be made. Other errors are those of `copy`.
absl::Status MakeFiles(const v1::FileManifest& manifest, const std::string& into,
                       const std::function<absl::Status(const v1::FileEntry&, const std::string& path)>& copy);

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_FILE_CACHE_H_
