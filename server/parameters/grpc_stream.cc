#include "server/parameters/grpc_stream.h"

#include <utility>

#include "server/parameters/call_reply.h"

namespace hooke {
namespace {

constexpr size_t kSmallBytesMax = size_t{64} << 10;

}  // namespace

GrpcStream::GrpcStream(Options options, const absl::Status& refusal)
    : options_(std::move(options)),
      call_(options_.calls, options_.context),
      exchange_(options_.store, [this](absl::Status status) {
        outcome_ = std::move(status);
        options_.resumes(*this);
      }) {
  seat_.emplace(options_.seats, options_.number, [context = options_.context] { context->TryCancel(); });
  if (!call_.admitted()) {
    Finish(Stopping());
  } else if (!refusal.ok()) {
    End(refusal);
  } else {
    Receive();
  }
}

GrpcStream::~GrpcStream() { options_.destroying(*this); }

void GrpcStream::OnReadDone(bool ok) {
  read_ = ok;
  Completed();
}

void GrpcStream::OnWriteDone(bool ok) {
  written_ = ok;
  Completed();
}

void GrpcStream::Completed() {
  if (pending_.fetch_sub(1) == 1) options_.moved(*this);
}

// An encoded message may have many more values than bytes.
bool GrpcStream::GoesOnAtOnce() const {
  if (shard() != nullptr && !shard()->plan().turns_may_wait()) return true;
  if (message_.Length() > kSmallBytesMax) return false;
  if (shard() == nullptr) return true;
  const JobRule& rule = shard()->plan().rule;
  return rule.sent.compression == Compression::kNone && rule.answered.compression == Compression::kNone;
}

GrpcStream::Next GrpcStream::GoOn() {
  switch (step_) {
    case Step::kMessage:
      return TakeMessage();
    case Step::kOpening:
      return outcome_.ok() ? Open() : End(outcome_);
    case Step::kSeat:
      return TakeSeat();
    case Step::kApplied:
      break;
  }
  return Apply(exchange_.Resume(std::move(outcome_)));
}

GrpcStream::Next GrpcStream::TakeMessage() {
  answer_.Clear();
  if (!written_) return End(absl::CancelledError("the exchange's stream broke"));
  if (!read_) return End(absl::OkStatus());
  absl::StatusOr<std::optional<v1::Sender>> opening = exchange_.Take(message_);
  message_.Clear();
  if (!opening.ok()) return End(opening.status());
  if (!opening->has_value()) {
    step_ = Step::kApplied;  // Set before BeginTaken: if that waits, another thread may call GoOn at once.
    return Apply(exchange_.BeginTaken());
  }
  opening_ = **std::move(opening);
  step_ = Step::kOpening;
  return Open();
}

GrpcStream::Next GrpcStream::Open() {
  const std::optional<absl::Status> status = exchange_.Open(opening_);
  if (!status.has_value()) return Next::kLoad;
  if (!status->ok()) return End(*status);
  options_.opened(*this);
  step_ = Step::kSeat;
  return TakeSeat();
}

GrpcStream::Next GrpcStream::TakeSeat() {
  const std::optional<absl::Status> status = seat_->TryTakeSeat(opening_);
  if (!status.has_value()) return Next::kSeat;
  if (!status->ok()) return End(*status);
  step_ = Step::kMessage;
  return Receive();
}

GrpcStream::Next GrpcStream::Apply(std::optional<absl::Status> status) {
  if (!status.has_value()) return Next::kOthers;
  if (!status->ok()) return End(*status);
  answer_ = exchange_.TakeAnswer();
  step_ = Step::kMessage;
  pending_ = 2;
  StartWrite(&answer_);
  StartRead(&message_);
  return Next::kResumed;
}

GrpcStream::Next GrpcStream::Receive() {
  pending_ = 1;
  StartRead(&message_);
  return Next::kResumed;
}

// The seat is free before the peer sees the end, so that its next stream need not wait.
GrpcStream::Next GrpcStream::End(const absl::Status& status) {
  seat_.reset();
  options_.left();
  Finish(ReplyTo(*options_.context, *options_.logger, "Exchange", status));
  return Next::kEnded;
}

}  // namespace hooke
