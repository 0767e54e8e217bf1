#include "server/parameters/exchange_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// How many of the `values` from `first` on lie in the block of `first`. Where there is no such block, all: they are
// refused together.
uint64_t ValuesOfBlock(const Shard& shard, uint64_t first, uint64_t values) {
  const Partition& partition = shard.plan().partition;
  if (first >= partition.values()) return values;
  return std::min(values, partition.BlockRange(partition.BlockOf(first)).end - first);
}

absl::StatusOr<v1::Sender> ReadSender(const IncomingFrame& frame) {
  absl::StatusOr<v1::Sender> sender = frame.Opening();
  if (!sender.ok()) return sender.status();
  if (absl::Status status = CheckJobId(sender->job_id()); !status.ok()) return status;
  return sender;
}

Speaker ToSpeaker(const v1::Sender& sender) { return {sender.group(), sender.rank(), sender.incarnation()}; }

}  // namespace

absl::StatusOr<bool> ExchangeSession::Receive(const grpc::ByteBuffer& message, grpc::ByteBuffer* answer) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  if (frame->kind() == FrameKind::kOpening) {
    absl::StatusOr<v1::Sender> sender = frame->Opening();
    if (!sender.ok()) return sender.status();
    if (absl::Status status = Open(*sender); !status.ok()) return status;
    return false;
  }
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  if (absl::Status status = CheckHeader(*header); !status.ok()) return status;
  values_.resize(header->values);
  frame->CopyValues(absl::MakeSpan(values_));
  OutgoingFrame answered = answers_.Make(header->values);
  if (absl::Status status = Apply(*header, values_, answered.values()); !status.ok()) return status;
  *answer = std::move(answered).Seal(*header);
  return true;
}

absl::Status ExchangeSession::Open(const v1::Sender& sender) {
  if (shard_ != nullptr) return absl::InvalidArgumentError("Exchange: a second opening; one is allowed, first");
  if (absl::Status status = CheckJobId(sender.job_id()); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Shard>> shard = store_->Find(sender.job_id());
  if (!shard.ok()) return shard.status();
  shard_ = *std::move(shard);
  exchange_.speaker = ToSpeaker(sender);
  return absl::OkStatus();
}

absl::Status ExchangeSession::CheckHeader(const ValuesHeader& header) const {
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Exchange: values came before any opening; the first message is an opening");
  // A message that nobody could repeat the answer to.
  const uint64_t blocks_max = shard_->plan().window_blocks;
  const uint64_t values_max = blocks_max * shard_->plan().partition.block_values();
  if (header.values <= values_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Exchange: a message has ", header.values, " values; at most ",
                                                 blocks_max, " blocks, ", values_max, " values, are allowed"));
}

absl::Status ExchangeSession::Apply(const ValuesHeader& header, absl::Span<const float> values,
                                    absl::Span<float> answer) {
  exchange_.sequence = header.sequence;
  for (uint64_t done = 0; done < values.size();) {
    exchange_.first = header.first + done;
    const uint64_t count = ValuesOfBlock(*shard_, exchange_.first, values.size() - done);
    absl::Status status = shard_->ApplyBlock(exchange_, values.subspan(done, count), answer.subspan(done, count));
    if (!status.ok()) return status;
    done += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> InitializeSession::Receive(absl::Time now, const grpc::ByteBuffer& message) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  if (frame->kind() == FrameKind::kOpening) {
    if (absl::Status status = Open(*frame); !status.ok()) return status;
    return !shard_->initialized();
  }
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Initialize: values came before the opening; the first message is an opening");
  if (header->sequence != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: values of exchange ", header->sequence, "; initial values have sequence 0"));
  }
  values_.resize(header->values);
  frame->CopyValues(absl::MakeSpan(values_));
  for (uint64_t done = 0; done < header->values;) {
    const uint64_t first = header->first + done;
    const uint64_t count = ValuesOfBlock(*shard_, first, header->values - done);
    absl::Status status = WriteBlock(now, first, absl::MakeConstSpan(values_).subspan(done, count));
    if (!status.ok()) return status;
    done += count;
  }
  return true;
}

absl::Status InitializeSession::Open(const IncomingFrame& frame) {
  if (shard_ != nullptr) return absl::InvalidArgumentError("Initialize: a second opening; one is allowed, first");
  absl::StatusOr<v1::Sender> sender = ReadSender(frame);
  if (!sender.ok()) return sender.status();
  absl::StatusOr<std::shared_ptr<Shard>> shard = store_->Find(sender->job_id());
  if (!shard.ok()) return shard.status();
  shard_ = *std::move(shard);
  job_id_ = sender->job_id();
  speaker_ = ToSpeaker(*sender);
  written_.assign(shard_->blocks(), false);
  return absl::OkStatus();
}

absl::Status InitializeSession::WriteBlock(absl::Time now, uint64_t first, absl::Span<const float> values) {
  absl::StatusOr<uint64_t> index = shard_->FindBlock(first, values.size());
  if (!index.ok()) return index.status();
  if (written_[*index]) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: the block at value ", first, " came twice; once is allowed"));
  }
  written_[*index] = true;
  return shard_->WriteInitial(now, speaker_, first, values);
}

absl::Status InitializeSession::Finish() {
  if (shard_ == nullptr) {
    return absl::InvalidArgumentError(
        "Initialize: the stream ended before the opening; the first message is an opening");
  }
  const auto missing = std::find(written_.begin(), written_.end(), false);
  if (missing != written_.end() && !shard_->initialized()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Initialize: ", std::count(written_.begin(), written_.end(), false), " of ", written_.size(),
        " blocks are missing, first the one at value ", shard_->BlockRange(missing - written_.begin()).begin));
  }
  return store_->FinishInitialize(job_id_, speaker_);
}

}  // namespace hooke
