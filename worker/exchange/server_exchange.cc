#include "worker/exchange/server_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_condition.h"
#include "clocks/steady_time.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// Pause between two attempts: short enough to find a restarted server soon, long enough to cost little.
constexpr absl::Duration kRetryPause = absl::Milliseconds(50);
// Limit for a Locate call. The thread of the exchanges makes it, so the job's last exchange may have to wait this long.
constexpr absl::Duration kQuestionTimeout = absl::Seconds(1);
// Pause after a failed Locate call to a server that answers exchanges.
constexpr absl::Duration kQuestionPause = absl::Milliseconds(500);
// Start itself writes a message of at most this many values. Such a message fits into the smallest window and into the
// smallest socket buffer of an idle connection, so writing cannot block.
constexpr uint64_t kCallerValues = 8192;

}  // namespace

bool IsFatalExchangeError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

ServerExchange::ServerExchange(ServerExchangeOptions options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

ServerExchange::~ServerExchange() {
  Stop();
  thread_.join();
  CloseStream().IgnoreError();
}

void ServerExchange::Stop() {
  absl::MutexLock lock(&mutex_);
  stop_ = true;
  expired_ = true;
  if (stream_ != nullptr) stream_->Cancel();
}

void ServerExchange::Start(const ExchangeCall& call, absl::Span<const float> sent, AnswerSink sink) {
  Outgoing next;
  std::shared_ptr<ExchangeStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (call.patience.skips_absent && presence_.skipped()) {
      result_ = ForWantOf(address(), absl::DeadlineExceededError(absl::StrCat("server ", address(), " is away")));
      return;
    }
    running_ = true;
    expired_ = false;
    call_ = call;
    progress_ = {SteadyTime(), std::nullopt, presence_.suspect()};
    deadline_ = ExchangeDeadline(call_.patience, progress_);
    sent_ = sent;
    sink_ = std::make_shared<const AnswerSink>(std::move(sink));
    blocks_ = BlocksOf(call);
    next_block_ = blocks_.begin;
    caller_writes_ = CanWriteInCaller();
    if (!caller_writes_) return;
    writing_ = true;
    next = NextToWrite();
    stream = stream_;
  }
  // If the write fails, the reader notices and the thread takes over.
  stream->Write(next.message);
  absl::MutexLock lock(&mutex_);
  writing_ = false;
}

bool ServerExchange::Skips() const {
  absl::MutexLock lock(&mutex_);
  return presence_.skipped();
}

absl::Status ServerExchange::Wait() {
  absl::MutexLock lock(&mutex_);
  auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !running_; };
  // Answers move the deadline, so look again each time it has passed.
  while (!AwaitUntil(mutex_, absl::Condition(&ended), deadline_)) {
    if (SteadyTime() < deadline_) continue;
    expired_ = true;
    if (stream_ != nullptr) stream_->Cancel();
    mutex_.Await(absl::Condition(&ended));
  }
  return result_;
}

void ServerExchange::Run() {
  while (true) {
    bool exchanges = false;
    {
      absl::MutexLock lock(&mutex_);
      auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || (running_ && !writing_ && (!caller_writes_ || broken_ || expired_));
      };
      exchanges = AwaitUntil(mutex_, absl::Condition(&wanted), std::min(presence_.next_question(), asks_again_));
      if (stop_) return;
      if (exchanges) caller_writes_ = false;
    }
    if (!exchanges) {
      Ask();
      continue;
    }
    absl::Status result = Exchange();
    std::optional<absl::Time> since;
    {
      absl::MutexLock lock(&mutex_);
      ExchangeEnd end = ExchangeEnd::kComplete;
      if (!result.ok()) end = progress_.answered.has_value() ? ExchangeEnd::kPartial : ExchangeEnd::kSilent;
      if (!result.ok() && call_.patience.awaits_quorum) end = ExchangeEnd::kMayWait;
      presence_.Ended(end, progress_.started, SteadyTime());
      since = presence_.absent_since();
    }
    // The change is reported before End, so that it is visible when Wait returns.
    Tell(since);
    const bool well = result.ok();
    {
      absl::MutexLock lock(&mutex_);
      End(std::move(result));
    }
    // This Locate call runs while the group trains. After a failed exchange, presence_.next_question() says when to
    // ask.
    if (well && asks_) Ask();
  }
}

void ServerExchange::Ask() {
  const absl::StatusOr<v1::LocateResponse> answer =
      options_.calls->Locate(options_.sender, SteadyTime() + kQuestionTimeout);
  if (answer.ok()) NoteOrigin(*answer);
  asks_again_ = asks_ ? SteadyTime() + kQuestionPause : absl::InfiniteFuture();
  std::optional<absl::Time> since;
  {
    absl::MutexLock lock(&mutex_);
    if (presence_.skipped()) presence_.Asked(answer.ok(), SteadyTime());
    since = presence_.absent_since();
  }
  Tell(since);
}

// Reports a setback if the server has restarted, because the server has then lost the exchanges that it answered after
// its snapshot.
void ServerExchange::NoteOrigin(const v1::LocateResponse& answer) {
  // Without a new stream the server has answered no exchange since its start, so all acknowledged exchanges came
  // before.
  const bool has_new_stream = std::exchange(asks_, false);
  // The value is 0 if the server was not started from a snapshot.
  const int64_t start = answer.restored().loaded_unix_us();
  const bool again = start != 0 && start_.has_value() && *start_ != start;
  start_ = start;
  if (!again) return;
  Setback setback;
  {
    absl::MutexLock lock(&mutex_);
    setback = acknowledged_.GoBack(answer.restored().sequence(), has_new_stream ? last_before_ : acknowledged_.last());
  }
  if (setback.exchanges == 0 || !options_.on_setback) return;
  options_.on_setback(absl::FromUnixMillis(answer.restored().snapshot_unix_ms()), setback);
}

void ServerExchange::Tell(std::optional<absl::Time> since) {
  if (since == told_ || !options_.on_presence) return;
  told_ = since;
  options_.on_presence(since.has_value() ? std::optional(WallTimeOf(*since)) : std::nullopt);
}

void ServerExchange::End(absl::Status result) {
  if (result.ok()) {
    acknowledged_.Note(call_.sequence, SteadyTime());
  } else {
    KeepUnanswered();
  }
  result_ = std::move(result);
  sent_ = {};
  sink_ = nullptr;
  running_ = false;
}

// Repeats attempts until all blocks are answered, the deadline has passed, or trying again is useless.
absl::Status ServerExchange::Exchange() {
  std::string last_error;
  while (true) {
    absl::Status status = Attempt();
    if (status.ok() || IsFatalExchangeError(status)) return status;
    // CANCELLED comes from our own Cancel at the deadline and explains nothing.
    if (!absl::IsCancelled(status)) last_error = absl::StrCat("; last error: ", status.message());
    absl::Time deadline;
    {
      absl::MutexLock lock(&mutex_);
      auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || expired_; };
      if (AwaitUntil(mutex_, absl::Condition(&over), SteadyTime() + kRetryPause)) {
        return ForWantOf(address(), absl::DeadlineExceededError(absl::StrCat(WhatTookTooLong(), last_error)));
      }
      const bool unreachable = absl::IsUnavailable(status) && !IsSaidByServer(status);
      if (unreachable && GivesUpUnreachable(call_.patience, progress_, SteadyTime())) {
        return ForWantOf(address(), absl::DeadlineExceededError(
                                        absl::StrCat("server ", address(), " cannot be reached", last_error)));
      }
      if (!absl::IsNotFound(status)) continue;
      ForgetKept();
      // The server has answered. It gets the time that creating the shard takes, within the limit of the whole
      // exchange.
      const auto shard_time = TransferTime(options_.partition.values());
      deadline_ =
          std::min(SteadyTime() + call_.patience.silence + shard_time, progress_.started + call_.patience.whole);
      deadline = deadline_;
    }
    status = options_.recreate(deadline);
    if (IsFatalExchangeError(status)) return status;
  }
}

std::string ServerExchange::WhatTookTooLong() const {
  if (deadline_ >= progress_.started + call_.patience.whole) {
    return absl::StrCat("the exchange with server ", address(), " was not complete within ",
                        absl::FormatDuration(call_.patience.whole), ", as --collective-timeout has it");
  }
  const absl::Duration silence = deadline_ - progress_.answered.value_or(progress_.started);
  return absl::StrCat("server ", address(), " did not answer within ", absl::FormatDuration(silence),
                      call_.patience.awaits_quorum ? ", perhaps as the round had no quorum" : "");
}

// Uses one stream: sends the unanswered messages again, then the rest, until every block is answered or the stream
// breaks.
absl::Status ServerExchange::Attempt() {
  OpenStream();
  while (true) {
    std::shared_ptr<ExchangeStream> stream;
    Outgoing next;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || expired_ || broken_ || AllAnswered() || CanWrite();
      };
      mutex_.Await(absl::Condition(&ready));
      if (AllAnswered()) return absl::OkStatus();
      if (stop_ || expired_ || broken_) break;
    }
    if (absl::Status status = EncodeNext(); !status.ok()) return status;
    {
      absl::MutexLock lock(&mutex_);
      next = NextToWrite();
      stream = stream_;
    }
    if (!stream->Write(next.message)) break;
  }
  absl::Status status = CloseStream();
  absl::MutexLock lock(&mutex_);
  return answer_error_.ok() ? status : answer_error_;
}

// With compression, cuts the next piece and encodes it. Encoding runs without the mutex, so answers are handled
// meanwhile. The piece has not been sent, so no answer changes its values.
absl::Status ServerExchange::EncodeNext() {
  if (options_.encoding.compression == Compression::kNone) return absl::OkStatus();
  absl::Span<const float> values;
  uint64_t first = 0;
  {
    absl::MutexLock lock(&mutex_);
    CutPiece();
    const Piece& piece = unanswered_[written_];
    if (piece.kept != nullptr) return absl::OkStatus();
    values = ValuesOf(piece);
    first = options_.partition.Values(piece.blocks).begin;
  }
  auto kept = std::make_shared<Kept>();
  kept->values.resize(values.size());
  kept->encoded.resize(EncodedBytes(options_.encoding, values.size()));
  absl::Status status = Encode(options_.encoding, values, absl::MakeSpan(kept->encoded));
  if (status.ok()) status = Decode(options_.encoding, kept->encoded, absl::MakeSpan(kept->values));
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    unanswered_[written_].kept = std::move(kept);
    return status;
  }
  unanswered_.pop_back();
  return absl::InvalidArgumentError(absl::StrCat("group ", options_.sender.group(), " has for the center, from value ",
                                                 first, " on, what cannot be sent: ", status.message(),
                                                 " (has its training diverged?)"));
}

void ServerExchange::CutPiece() {
  if (written_ < unanswered_.size()) return;
  const Range blocks = {next_block_, next_block_ + NextPieceBlocks()};
  unanswered_.push_back({blocks, call_.sequence, nullptr, false});
  next_block_ = blocks.end;
}

// Whether the next message may be written now. Messages of earlier exchanges must be answered first, so that sequences
// only grow.
bool ServerExchange::CanWrite() const {
  if (written_ < unanswered_.size()) return true;
  const bool settling = !unanswered_.empty() && unanswered_.back().old;
  if (settling || next_block_ == blocks_.end) return false;
  uint64_t blocks = NextPieceBlocks();
  for (const Piece& piece : unanswered_) blocks += piece.blocks.size();
  return blocks <= options_.window_blocks;
}

bool ServerExchange::CanWriteInCaller() const {
  const bool well = stream_ != nullptr && !broken_ && !presence_.suspect() && answer_error_.ok() && unanswered_.empty();
  const bool plain = options_.encoding.compression == Compression::kNone;
  return well && plain && NextPieceBlocks() == blocks_.size() &&
         options_.partition.Values(blocks_).size() <= kCallerValues;
}

uint64_t ServerExchange::NextPieceBlocks() const {
  // A message takes at most half a window, so that two messages overlap even in a small window.
  const uint64_t most = std::min(kMessageBlocks, (uint64_t{options_.window_blocks} + 1) / 2);
  return std::min(most, blocks_.end - next_block_);
}

ServerExchange::Outgoing ServerExchange::NextToWrite() {
  CutPiece();
  const Piece& piece = unanswered_[written_++];
  Outgoing next = {{piece.sequence, options_.partition.Values(piece.blocks).begin, ValuesOf(piece)}, piece.kept};
  if (options_.encoding.compression != Compression::kNone) {
    next.message.encoding = options_.encoding;
    next.message.encoded = piece.kept->encoded;
    next.message.answered = options_.answered;
  }
  return next;
}

absl::Span<const float> ServerExchange::ValuesOf(const Piece& piece) const {
  if (piece.kept != nullptr) return piece.kept->values;
  const Range range = options_.partition.Values(piece.blocks);
  return sent_.subspan(range.begin, range.size());
}

// The reading thread runs this as long as the stream lives, also between exchanges.
void ServerExchange::ReadAnswers(ExchangeStream* stream) {
  AnsweredBlocks answer;
  while (stream->Read(&answer)) {
    Delivery to;
    {
      absl::MutexLock lock(&mutex_);
      // We cancelled the stream, so answers that still arrive do not count.
      if (!answer_error_.ok()) continue;
      auto due = CheckAnswer(answer);
      if (!due.ok()) {
        answer_error_ = due.status();
        stream->Cancel();
        continue;
      }
      to = *std::move(due);
    }
    if (to.sink == nullptr) continue;
    // The sink runs without the mutex. The exchange cannot end before NoteAnswered, or before this thread ends.
    Deliver(answer, to);
    absl::MutexLock lock(&mutex_);
    NoteAnswered();
  }
  absl::MutexLock lock(&mutex_);
  broken_ = true;
}

absl::StatusOr<ServerExchange::Delivery> ServerExchange::CheckAnswer(const AnsweredBlocks& answer) {
  // After the deadline answers do not count any more. The server will repeat this one.
  if (!running_ || expired_) return Delivery{};
  if (written_ == 0) {
    return absl::InternalError(absl::StrCat("server ", address(), " answered blocks that were not sent"));
  }
  const Piece& piece = unanswered_.front();
  const Range range = options_.partition.Values(piece.blocks);
  if (answer.sequence == piece.sequence && answer.first == range.begin && answer.values.size() == range.size()) {
    return Delivery{sink_, ValuesOf(piece), piece.kept, piece.old};
  }
  return absl::InternalError(absl::StrCat("server ", address(), " answered ", answer.values.size(), " values at value ",
                                          answer.first, " of exchange ", answer.sequence, " where values ", range.begin,
                                          " to before ", range.end, " of exchange ", piece.sequence, " were due"));
}

void ServerExchange::Deliver(const AnsweredBlocks& answer, const Delivery& to) const {
  const absl::Span<const float> values = answer.values;
  for (uint64_t done = 0; done < values.size();) {
    const uint64_t first = answer.first + done;
    const uint64_t count = options_.partition.BlockRange(options_.partition.BlockOf(first)).end - first;
    (*to.sink)({first, to.sent.subspan(done, count), values.subspan(done, count), to.earlier});
    done += count;
  }
}

void ServerExchange::NoteAnswered() {
  unanswered_.pop_front();
  --written_;
  progress_.answered = SteadyTime();
  deadline_ = ExchangeDeadline(call_.patience, progress_);
  if (caller_writes_ && AllAnswered()) End(absl::OkStatus());
}

void ServerExchange::KeepUnanswered() {
  for (Piece& piece : unanswered_) {
    piece.old = true;
    if (piece.kept != nullptr) continue;
    const absl::Span<const float> values = ValuesOf(piece);
    piece.kept = std::make_shared<const Kept>(Kept{{values.begin(), values.end()}, {}});
  }
}

// Drops the messages kept from earlier exchanges. Called when the server has lost its shard: the group creates the
// shard again from values that do not need them.
void ServerExchange::ForgetKept() {
  unanswered_.erase(
      std::remove_if(unanswered_.begin(), unanswered_.end(), [](const Piece& piece) { return piece.old; }),
      unanswered_.end());
}

// Makes sure that there is a stream that has not broken yet.
void ServerExchange::OpenStream() {
  {
    absl::MutexLock lock(&mutex_);
    if (stream_ != nullptr && !broken_) return;
  }
  CloseStream().IgnoreError();  // The stream broke while nobody used it.
  std::shared_ptr<ExchangeStream> stream = options_.calls->OpenExchange(options_.sender);
  {
    absl::MutexLock lock(&mutex_);
    stream_ = stream;
    broken_ = false;
    written_ = 0;
    answer_error_ = absl::OkStatus();
    if (expired_ || stop_) stream_->Cancel();
  }
  if (!std::exchange(asks_, true)) {
    absl::MutexLock lock(&mutex_);
    last_before_ = acknowledged_.last();
  }
  reader_ = std::thread([this, stream] { ReadAnswers(stream.get()); });
}

// Ends the stream, if there is one, and returns why it broke.
absl::Status ServerExchange::CloseStream() {
  std::shared_ptr<ExchangeStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    stream = stream_;
  }
  if (stream == nullptr) return absl::OkStatus();
  // A write may fail before the reader has received the reason, so we wait a moment for the reader. Only a stream that
  // still lives is cancelled.
  {
    absl::MutexLock lock(&mutex_);
    auto broken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return broken_; };
    const absl::Duration patience = stop_ || expired_ ? absl::ZeroDuration() : kRetryPause;
    if (!AwaitUntil(mutex_, absl::Condition(&broken), SteadyTime() + patience)) {
      stream->Cancel();
    }
  }
  reader_.join();
  absl::Status status = stream->Finish();
  absl::MutexLock lock(&mutex_);
  stream_ = nullptr;
  return status;
}

}  // namespace hooke
