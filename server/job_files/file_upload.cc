// FileStore::Upload: contents on their way from a client into the store.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "job/file_manifest.h"
#include "server/job_files/file_store.h"

namespace hooke {
namespace {

// How long an upload waits for a content of the same name to be removed.
constexpr absl::Duration kRemoveLimit = absl::Seconds(10);

}  // namespace

FileStore::Upload::~Upload() {
  Drop();
  absl::MutexLock lock(&store_->mutex_);
  store_->uploads_.erase(begun_);
}

void FileStore::Upload::Drop() {
  content_.reset();
  absl::MutexLock lock(&store_->mutex_);
  store_->reserved_ -= std::exchange(reserved_, 0);
}

absl::Status FileStore::Upload::Begin(absl::Duration now) {
  const v1::FileContent& coming = check_.content();
  {
    absl::MutexLock lock(&store_->mutex_);
    if (store_->Keep(coming, now)) return absl::OkStatus();
  }
  if (absl::Status status = store_->Reserve(coming.bytes()); !status.ok()) return status;
  reserved_ = Counted(coming.bytes());
  absl::StatusOr<std::unique_ptr<NewContent>> content = store_->folder_->Begin();
  if (!content.ok()) return content.status();
  content_ = *std::move(content);
  return absl::OkStatus();
}

absl::Status FileStore::Upload::Take(const v1::FileChunk& chunk, absl::Duration now) {
  const absl::StatusOr<ChunkCheck::Step> step = check_.Take(chunk);
  if (!step.ok()) return step.status();
  if (step->begins) {
    if (contents_ >= kContentsMax) {
      return absl::InvalidArgumentError(absl::StrCat("an upload has at most ", kContentsMax, " contents"));
    }
    if (absl::Status status = Begin(now); !status.ok()) return status;
  }
  if (content_ != nullptr) {
    if (absl::Status status = content_->Append(chunk.data()); !status.ok()) return status;
  }
  if (!step->ends) return absl::OkStatus();
  ++contents_;
  if (content_ == nullptr) return absl::OkStatus();
  const v1::FileContent& came = check_.content();
  {
    // If a removal of the old file of that name is under way, it would remove the new one.
    absl::MutexLock lock(&store_->mutex_);
    const absl::Time deadline = SteadyTime() + kRemoveLimit;
    for (auto found = store_->stored_.find(came.sha256()); found != store_->stored_.end() && found->second.leaving;
         found = store_->stored_.find(came.sha256())) {
      if (SteadyTime() >= deadline) {
        return absl::UnavailableError("the coordinator's disk does not answer: try again");
      }
      store_->removed_.WaitUntil(store_->mutex_, deadline);
    }
  }
  absl::Status status = content_->Publish(NameOf(came.sha256()), Durable::kYes);
  content_.reset();
  absl::MutexLock lock(&store_->mutex_);
  store_->reserved_ -= std::exchange(reserved_, 0);
  if (!status.ok()) return status;
  const auto [stored, is_new] = store_->stored_.try_emplace(came.sha256());
  // Another upload may have brought the same content meanwhile.
  if (!is_new) store_->Subtract(stored->second.bytes);
  store_->Add(came.bytes());
  stored->second = {came.bytes(), now, false};
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> FileStore::Upload::Finish() const {
  if (absl::Status status = check_.CheckEnd(); !status.ok()) return status;
  return contents_;
}

}  // namespace hooke
