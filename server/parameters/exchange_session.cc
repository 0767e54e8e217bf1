#include "server/parameters/exchange_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/compression.h"
#include "server/parameters/job_rule.h"

namespace hooke {
namespace {

// Returns how many of the `values` values from `first` on are in the block that holds `first`. If no block holds
// `first`, returns `values`, so that all of them are refused together.
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

static_assert(static_cast<int>(WireType::kFloat32) == static_cast<int>(Compression::kNone));
static_assert(static_cast<int>(WireType::kFloat16) == static_cast<int>(Compression::kFloat16));
static_assert(static_cast<int>(WireType::kBFloat16) == static_cast<int>(Compression::kBFloat16));
static_assert(static_cast<int>(WireType::kInt8) == static_cast<int>(Compression::kInt8));
static_assert(static_cast<int>(WireType::kInt4) == static_cast<int>(Compression::kInt4));
static_assert(static_cast<int>(WireType::kTopK) == static_cast<int>(Compression::kTopK));

WireType TypeOf(const Encoding& encoding) { return static_cast<WireType>(encoding.compression); }

absl::Status CheckType(const ValuesHeader& header, const Encoding& allowed) {
  if (header.type != TypeOf(allowed)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Exchange: values are of type ", WireTypeText(header.type), "; the job's averaging.compression is ",
        CompressionName(allowed.compression), ", type ", WireTypeText(TypeOf(allowed))));
  }
  if (header.top_k == allowed.top_k) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Exchange: a message has ", header.top_k, " of each ", kTopKRun,
                                                 " values; by the job's averaging.top_k it is ", allowed.top_k));
}

Speaker ToSpeaker(const v1::Sender& sender) { return {sender.group(), sender.rank(), sender.incarnation()}; }

}  // namespace

absl::Span<char> PayloadIn(std::vector<float>& memory, const ValuesHeader& header) {
  const uint64_t bytes = PayloadBytes(header);
  memory.resize((bytes + sizeof(float) - 1) / sizeof(float));
  return {reinterpret_cast<char*>(memory.data()), bytes};
}

absl::StatusOr<std::optional<v1::Sender>> ExchangeSession::Take(const grpc::ByteBuffer& message) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  if (frame->kind() == FrameKind::kOpening) return frame->Opening();
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  if (absl::Status status = CheckHeader(*header); !status.ok()) return status;
  taken_ = *header;
  frame->CopyPayload(PayloadIn(payload_, taken_));
  return std::optional<v1::Sender>();
}

std::optional<absl::Status> ExchangeSession::BeginTaken() {
  answered_.emplace(answers_.Make(PayloadBytes(AnswerHeader(taken_))));
  return Begin(taken_, PayloadIn(payload_, taken_), answered_->payload());
}

grpc::ByteBuffer ExchangeSession::TakeAnswer() { return std::move(*answered_).Seal(AnswerHeader(taken_)); }

std::optional<absl::Status> ExchangeSession::Open(const v1::Sender& sender) {
  if (shard_ != nullptr) return absl::InvalidArgumentError("Exchange: a second opening; one is allowed, first");
  if (absl::Status status = CheckJobId(sender.job_id()); !status.ok()) return status;
  std::optional<absl::StatusOr<std::shared_ptr<Shard>>> shard = store_->FindLoaded(sender);
  if (!shard.has_value()) return std::nullopt;
  if (!shard->ok()) return shard->status();
  if (absl::Status status = (**shard)->CheckSpeaker(ToSpeaker(sender)); !status.ok()) return status;
  shard_ = **std::move(shard);
  sender_ = sender;
  turn_.exchange.speaker = ToSpeaker(sender);
  return absl::OkStatus();
}

absl::Status ExchangeSession::CheckHeader(const ValuesHeader& header) const {
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Exchange: values came before any opening; the first message is an opening");
  if (absl::Status status = CheckType(header, shard_->plan().rule.sent); !status.ok()) return status;
  // The answer to a longer message would not be kept, so it could not be repeated.
  const uint64_t blocks_max = shard_->plan().window_blocks;
  const uint64_t values_max = blocks_max * shard_->plan().partition.block_values();
  if (header.values <= values_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Exchange: a message has ", header.values, " values; at most ",
                                                 blocks_max, " blocks, ", values_max, " values, are allowed"));
}

ValuesHeader ExchangeSession::AnswerHeader(const ValuesHeader& header) const {
  const Encoding& answered = shard_->plan().rule.answered;
  return {header.sequence, header.first, header.values, TypeOf(answered), answered.top_k};
}

absl::Status ExchangeSession::DecodeValues(const ValuesHeader& header, absl::Span<const char> payload) {
  values_.resize(header.values);
  answer_.resize(header.values);
  absl::Status status = Decode(shard_->plan().rule.sent, payload, absl::MakeSpan(values_));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("Exchange: a message of ", header.values, " values from value ",
                                                 header.first, " on cannot be decoded: ", status.message()));
}

absl::Status ExchangeSession::EncodeAnswer(uint64_t first, absl::Span<char> answer) const {
  absl::Status status = Encode(shard_->plan().rule.answered, answer_, answer);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat("Exchange: the center has diverged: from value ", first, " on, ",
                                                    status.message(), "; lower the learning rate"));
}

std::optional<absl::Status> ExchangeSession::Begin(const ValuesHeader& header, absl::Span<const char> payload,
                                                   absl::Span<char> answer) {
  turn_.exchange.sequence = header.sequence;
  turn_.contended = absl::ZeroDuration();
  if (header.type == WireType::kFloat32) {
    begun_ = {header,
              {reinterpret_cast<const float*>(payload.data()), header.values},
              {reinterpret_cast<float*>(answer.data()), header.values},
              {},
              shard_->meter().Now()};
    return GoOn();
  }
  begun_ = {header, {}, {}, answer, shard_->meter().Now()};
  if (absl::Status status = DecodeValues(header, payload); !status.ok()) return NoteMessageEnd(std::move(status));
  begun_.values = values_;
  begun_.answer = absl::MakeSpan(answer_);
  return GoOn();
}

std::optional<absl::Status> ExchangeSession::Resume(absl::Status status) {
  begun_.waited += shard_->meter().Now() - turn_.queued;
  if (!status.ok()) return NoteMessageEnd(std::move(status));
  begun_.done += turn_.values.size();
  return GoOn();
}

// If a turn waits, another thread may go on with this session at once. So nothing here is touched after that.
std::optional<absl::Status> ExchangeSession::GoOn() {
  std::optional<absl::Status> status = ApplyBlocks();
  return status.has_value() ? NoteMessageEnd(*std::move(status)) : status;
}

std::optional<absl::Status> ExchangeSession::ApplyBlocks() {
  while (begun_.done < begun_.values.size()) {
    turn_.exchange.first = begun_.header.first + begun_.done;
    const uint64_t count = ValuesOfBlock(*shard_, turn_.exchange.first, begun_.values.size() - begun_.done);
    turn_.values = begun_.values.subspan(begun_.done, count);
    turn_.answer = begun_.answer.subspan(begun_.done, count);
    std::optional<absl::Status> status = shard_->Begin(turn_);
    if (!status.has_value() || !status->ok()) return status;
    begun_.done += count;
  }
  if (begun_.encoded.empty()) return absl::OkStatus();
  return EncodeAnswer(begun_.header.first, begun_.encoded);
}

absl::Status ExchangeSession::NoteMessageEnd(absl::Status status) {
  ExchangeMeter& meter = shard_->meter();
  if (!status.ok()) {
    meter.Refused();
    return status;
  }
  const uint64_t received = PayloadBytes(begun_.header);
  const uint64_t sent = PayloadBytes(AnswerHeader(begun_.header));
  const absl::Time answered = meter.Answered({sender_.group(), begun_.arrived, received, sent});
  shard_->served()->Add({{sender_.group(), sender_.rank(), sender_.incarnation(), begun_.header.sequence},
                         absl::ToUnixNanos(begun_.arrived),
                         absl::ToUnixNanos(answered),
                         absl::ToInt64Nanoseconds(begun_.waited + turn_.contended),
                         received,
                         sent});
  return status;
}

absl::StatusOr<bool> InitializeSession::Receive(absl::Time now, const grpc::ByteBuffer& message) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  if (frame->kind() == FrameKind::kOpening) {
    if (absl::Status status = Open(*frame); !status.ok()) return status;
    return !shard_->initialized() || rewinds_;
  }
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Initialize: values came before the opening; the first message is an opening");
  if (header->type != WireType::kFloat32) {
    return absl::InvalidArgumentError(absl::StrCat("Initialize: values are of type ", WireTypeText(header->type),
                                                   "; initial values are of type 1 (float32)"));
  }
  if (!rewinds_ && header->sequence != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: values of exchange ", header->sequence, "; initial values have sequence 0"));
  }
  values_.resize(header->values);
  frame->CopyValues(absl::MakeSpan(values_));
  for (uint64_t done = 0; done < header->values;) {
    const uint64_t first = header->first + done;
    const uint64_t count = ValuesOfBlock(*shard_, first, header->values - done);
    absl::Status status = WriteBlock(now, *header, first, absl::MakeConstSpan(values_).subspan(done, count));
    // A late repeat of the initial values changes nothing.
    if (absl::IsFailedPrecondition(status) && rewinds_ && header->sequence == 0) return false;
    if (!status.ok()) return status;
    done += count;
  }
  return true;
}

absl::Status InitializeSession::Open(const IncomingFrame& frame) {
  if (shard_ != nullptr) return absl::InvalidArgumentError("Initialize: a second opening; one is allowed, first");
  absl::StatusOr<v1::Sender> sender = ReadSender(frame);
  if (!sender.ok()) return sender.status();
  absl::StatusOr<std::shared_ptr<Shard>> shard = store_->Find(*sender);
  if (!shard.ok()) return shard.status();
  if (absl::Status status = (*shard)->CheckSpeaker(ToSpeaker(*sender)); !status.ok()) return status;
  shard_ = *std::move(shard);
  job_id_ = sender->job_id();
  speaker_ = ToSpeaker(*sender);
  rewinds_ = shard_->initialized() && shard_->MayRewind();
  written_.assign(shard_->blocks(), false);
  return absl::OkStatus();
}

absl::Status InitializeSession::WriteBlock(absl::Time now, const ValuesHeader& header, uint64_t first,
                                           absl::Span<const float> values) {
  absl::StatusOr<uint64_t> index = shard_->plan().FindBlock(first, values.size());
  if (!index.ok()) return index.status();
  if (written_[*index]) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: the block at value ", first, " came twice; once is allowed"));
  }
  written_[*index] = true;
  if (rewinds_) return shard_->Rewind({speaker_, header.sequence, first}, values);
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
