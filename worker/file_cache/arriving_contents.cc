#include "worker/file_cache/arriving_contents.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"

namespace hooke {

ArrivingContents::ArrivingContents(const ContentFolder& folder, std::vector<v1::FileContent> wanted,
                                   std::function<void(const v1::FileContent&)> came)
    : folder_(folder), wanted_(std::move(wanted)), came_(std::move(came)) {
  for (const v1::FileContent& content : wanted_) bytes_left_ += content.bytes();
}

absl::Status ArrivingContents::Take(const v1::FileChunk& chunk) {
  const absl::StatusOr<ChunkCheck::Step> step = check_.Take(chunk);
  // UNAVAILABLE, so that the group is started again: the coordinator may then send what was asked for.
  if (!step.ok()) return absl::UnavailableError(step.status().message());
  if (step->begins) {
    const v1::FileContent& begun = check_.content();
    if (next_ >= wanted_.size() || begun.sha256() != wanted_[next_].sha256() ||
        begun.bytes() != wanted_[next_].bytes()) {
      return absl::UnavailableError("the coordinator sent another file than this worker asked for");
    }
  }
  if (absl::Status status = Write(chunk, *step); !status.ok()) {
    disk_full_ = absl::IsResourceExhausted(status);
    return status;
  }
  if (!step->ends) return absl::OkStatus();
  bytes_left_ -= wanted_[next_].bytes();
  came_(wanted_[next_++]);
  return absl::OkStatus();
}

absl::Status ArrivingContents::Write(const v1::FileChunk& chunk, const ChunkCheck::Step& step) {
  if (step.begins) {
    absl::StatusOr<std::unique_ptr<NewContent>> begun = folder_.Begin();
    if (!begun.ok()) return begun.status();
    file_ = *std::move(begun);
  }
  if (absl::Status status = file_->Append(chunk.data()); !status.ok()) return status;
  if (!step.ends) return absl::OkStatus();
  absl::Status status = file_->Publish(absl::BytesToHexString(wanted_[next_].sha256()), Durable::kNo);
  file_.reset();
  return status;
}

absl::Status ArrivingContents::CheckEnd() const {
  if (next_ == wanted_.size()) return absl::OkStatus();
  return absl::UnavailableError("the coordinator sent fewer files than this worker asked for");
}

}  // namespace hooke
