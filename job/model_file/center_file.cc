#include "job/model_file/center_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "job/model_file/export_metadata.h"
#include "job/state_word.h"
#include "job/visible_text.h"
#include "wire/layout_difference.h"
#include "wire/model_metadata.h"

namespace hooke {
namespace {

constexpr char kNotDescribed[] =
    "the job's servers do not know how the model's input is normalized, because an older Hooke or a program of your "
    "own created the center: the file has no mean, std, input_shape, classes and architecture_version";

}  // namespace

absl::StatusOr<CenterFile> CenterFile::Open(const v1::JobStatus& job, CenterSource& source) {
  if (job.servers().empty()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.job_id(), " (", JobStateText(job.state()),
                                                      ") has no center yet; export it after its first step"));
  }
  CenterFile file(job, source);
  for (int shard = 0; shard < job.servers_size(); ++shard) {
    const absl::StatusOr<std::optional<v1::PullResponse>> message = source.Next(shard);
    if (!message.ok()) return message.status();
    absl::Status taken = file.TakeHeader(shard, *message);
    if (taken.ok() && shard == 0) taken = file.MakeHead(job);
    if (!taken.ok()) return file.BadShard(shard, taken);
  }
  if (!file.described()) file.notes_.insert(file.notes_.begin(), kNotDescribed);
  return file;
}

CenterFile::CenterFile(const v1::JobStatus& job, CenterSource& source)
    : source_(&source), servers_(job.servers().begin(), job.servers().end()) {}

absl::Status CenterFile::TakeHeader(int shard, const std::optional<v1::PullResponse>& message) {
  if (!message.has_value()) return absl::DataLossError("nothing came");
  if (!message->has_header()) return absl::DataLossError("the header does not come first");
  const v1::PullResponse::Header& header = message->header();
  if (header.shard_index() != static_cast<uint32_t>(shard) || header.shard_count() != servers_.size()) {
    return absl::DataLossError(absl::StrCat("this is shard ", header.shard_index(), " of ", header.shard_count(),
                                            ", not ", shard, " of ", servers_.size()));
  }
  if (shard > 0) return CompareWithFirst(shard, header.layout());
  layout_ = header.layout();
  if (!layout_.has_model()) return absl::OkStatus();
  const absl::Status described = CheckModelDescription(layout_.model());
  return described.ok() ? described : absl::DataLossError(described.message());
}

absl::Status CenterFile::CompareWithFirst(int shard, const v1::Layout& layout) {
  if (FindDifference(layout_, layout).has_value()) return absl::DataLossError("its layout is not that of shard 0");
  if (layout.model().SerializeAsString() == layout_.model().SerializeAsString()) return absl::OkStatus();
  notes_.push_back(absl::StrCat("server ", servers_[static_cast<size_t>(shard)],
                                " describes the model otherwise than server ", servers_[0],
                                ", by which the file goes: the job's groups have read different training data, or were "
                                "started by different versions of Hooke"));
  return absl::OkStatus();
}

absl::Status CenterFile::MakeHead(const v1::JobStatus& job) {
  std::vector<TensorShape> tensors;
  for (const v1::Parameter& parameter : layout_.parameters()) {
    if (parameter.type() != v1::Parameter::FLOAT32)
      return absl::DataLossError(absl::StrCat("parameter ", parameter.name(), " is not float32"));
    tensors.push_back({parameter.name(), {parameter.shape().begin(), parameter.shape().end()}});
  }
  absl::StatusOr<std::string> head = SafetensorsHeader(tensors, ExportMetadata(job, layout_));
  if (!head.ok()) return head.status();
  head_ = *std::move(head);
  tensors_ = tensors.size();
  values_ = CountValues(tensors);
  return absl::OkStatus();
}

absl::StatusOr<std::string> CenterFile::Next() {
  if (!std::exchange(head_sent_, true)) return head_;
  for (; shard_ < static_cast<int>(servers_.size()); ++shard_) {
    absl::StatusOr<std::optional<v1::PullResponse>> message = source_->Next(shard_);
    if (!message.ok()) return message.status();
    if (!message->has_value()) continue;
    if (absl::Status status = CheckBlock(**message); !status.ok()) return BadShard(shard_, status);
    std::string values = std::move(*(**message).mutable_block()->mutable_values());
    next_ += values.size() / 4;
    return values;
  }
  if (next_ == values_) return std::string();
  return absl::DataLossError(absl::StrCat("the servers sent ", next_, " of ", values_, " values; try again"));
}

// Blocks come in order, and a shard begins where the previous one ends.
absl::Status CenterFile::CheckBlock(const v1::PullResponse& message) const {
  if (message.has_header()) return absl::DataLossError("the header does not come first");
  const v1::Block& block = message.block();
  const uint64_t count = block.values().size() / 4;
  if (block.values().size() % 4 == 0 && count > 0 && block.first() == next_ && count <= values_ - next_)
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("a block of ", block.values().size(), " bytes at value ", block.first(),
                                          " came where value ", next_, " of ", values_, " was due"));
}

absl::Status CenterFile::BadShard(int shard, const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat("server ", servers_[static_cast<size_t>(shard)], ": ", Escaped(status.message()),
                                   "; try again, and if that repeats, see the log of that server"));
}

}  // namespace hooke
