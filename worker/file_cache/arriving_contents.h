#ifndef HOOKE_WORKER_FILE_CACHE_ARRIVING_CONTENTS_H_
#define HOOKE_WORKER_FILE_CACHE_ARRIVING_CONTENTS_H_

// Contents on their way into the cache's folder: the chunks of one fetch, checked and written. Used by one thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "files/content_folder.h"
#include "proto/coordinator.pb.h"
#include "wire/file_chunks.h"

namespace hooke {

class ArrivingContents {
 public:
  // `wanted` comes in this order. `came` is called for each content once it is in the folder. The folder must outlive
  // this object.
  ArrivingContents(const ContentFolder& folder, std::vector<v1::FileContent> wanted,
                   std::function<void(const v1::FileContent&)> came);

  // UNAVAILABLE: the chunk is not one of what was asked for. Other errors are those of NewContent. After an error
  // nothing more may be taken.
  absl::Status Take(const v1::FileChunk& chunk);
  // UNAVAILABLE: not all contents came.
  absl::Status CheckEnd() const;

  bool disk_full() const { return disk_full_; }  // True: Take failed because the disk is full.
  uint64_t bytes_left() const { return bytes_left_; }

 private:
  absl::Status Write(const v1::FileChunk& chunk, const ChunkCheck::Step& step);

  const ContentFolder& folder_;
  const std::vector<v1::FileContent> wanted_;
  const std::function<void(const v1::FileContent&)> came_;
  ChunkCheck check_;
  std::unique_ptr<NewContent> file_;
  size_t next_ = 0;  // Index in `wanted_` of the content that comes next.
  uint64_t bytes_left_ = 0;
  bool disk_full_ = false;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_ARRIVING_CONTENTS_H_
