#include "worker/rank/server_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/elastic.h"
#include "worker/rank/blocks.h"

namespace hooke {
namespace {

// A server that comes back is found this quickly; one that stays away costs so little.
constexpr absl::Duration kRetryPause = absl::Milliseconds(50);

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
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    expired_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  thread_.join();
  CloseStream().IgnoreError();
}

void ServerExchange::Start(const ExchangeCall& call, absl::Span<float> vector) {
  absl::MutexLock lock(&mutex_);
  running_ = true;
  expired_ = false;
  started_ = absl::Now();
  call_ = call;
  deadline_ = started_ + (suspect_ ? call.probe_timeout : call.timeout);
  vector_ = vector;
  next_block_ = options_.blocks.begin;
}

absl::Status ServerExchange::Wait() {
  absl::MutexLock lock(&mutex_);
  auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !running_; };
  // An answer moves the deadline of a suspected server: look again each time it has passed.
  while (!mutex_.AwaitWithDeadline(absl::Condition(&ended), deadline_)) {
    if (absl::Now() < deadline_) continue;
    expired_ = true;
    if (stream_ != nullptr) stream_->Cancel();
    mutex_.Await(absl::Condition(&ended));
  }
  return result_;
}

void ServerExchange::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || running_; };
      mutex_.Await(absl::Condition(&wanted));
      if (stop_) return;
    }
    absl::Status result = Exchange();
    absl::MutexLock lock(&mutex_);
    if (!result.ok()) KeepUnanswered();
    suspect_ = !result.ok();
    result_ = std::move(result);
    vector_ = {};
    running_ = false;
  }
}

// Attempts until all blocks are answered, the deadline has passed, or trying again is of no use.
absl::Status ServerExchange::Exchange() {
  std::string last_error;
  while (true) {
    absl::Status status = Attempt();
    if (status.ok() || IsFatalExchangeError(status)) return status;
    // Being cancelled is our own doing, at the deadline.
    if (!absl::IsCancelled(status)) last_error = absl::StrCat("; last error: ", status.message());
    absl::Span<const float> vector;
    absl::Time deadline;
    {
      absl::MutexLock lock(&mutex_);
      auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || expired_; };
      if (mutex_.AwaitWithTimeout(absl::Condition(&over), kRetryPause)) {
        return absl::DeadlineExceededError(absl::StrCat("server ", address(), " did not answer within ",
                                                        absl::FormatDuration(deadline_ - started_), last_error));
      }
      if (!absl::IsNotFound(status)) continue;
      ForgetKept();
      // It has answered: a suspected server gets the time that creating the shard takes.
      deadline_ = started_ + call_.timeout;
      vector = vector_;
      deadline = deadline_;
    }
    status = options_.recreate(vector, deadline);
    if (IsFatalExchangeError(status)) return status;
  }
}

// One stream's worth: sends again what is unanswered, then the rest, until every block is answered or the stream
// breaks.
absl::Status ServerExchange::Attempt() {
  OpenStream();
  v1::ExchangeRequest header;
  v1::ExchangeRequest block;
  while (true) {
    std::shared_ptr<ExchangeStream> stream;
    bool new_header = false;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || expired_ || broken_ || AllAnswered() || CanWrite();
      };
      mutex_.Await(absl::Condition(&ready));
      if (AllAnswered()) return absl::OkStatus();
      if (stop_ || expired_ || broken_) break;
      new_header = NextToWrite(&header, &block);
      stream = stream_;
    }
    if (new_header && !stream->Write(header)) break;
    if (!stream->Write(block)) break;
  }
  absl::Status status = CloseStream();
  absl::MutexLock lock(&mutex_);
  return answer_error_.ok() ? status : answer_error_;
}

// Old exchanges are settled before a new one begins, so that sequences only grow.
bool ServerExchange::CanWrite() const {
  if (written_ < unanswered_.size()) return true;
  const bool settling = !unanswered_.empty() && !unanswered_.back().kept.empty();
  return !settling && next_block_ < options_.blocks.end && unanswered_.size() < options_.window_blocks;
}

// Fills `block`; and `header`, returning true, where the block belongs to another exchange than the one before it on
// this stream.
bool ServerExchange::NextToWrite(v1::ExchangeRequest* header, v1::ExchangeRequest* block) {
  if (written_ == unanswered_.size()) unanswered_.push_back({next_block_++, call_.sequence, {}});
  const Block& next = unanswered_[written_++];
  const Range range = options_.partition.BlockRange(next.index);
  absl::Span<const float> values = next.kept;
  if (values.empty()) values = vector_.subspan(range.begin, range.size());
  WriteBlock(values, {0, range.size()}, block->mutable_block());
  block->mutable_block()->set_first(range.begin);
  if (next.sequence == header_sequence_) return false;
  header_sequence_ = next.sequence;
  *header->mutable_header()->mutable_sender() = options_.sender;
  header->mutable_header()->set_sequence(next.sequence);
  return true;
}

// The reading thread: as long as the stream lives, also between exchanges.
void ServerExchange::ReadAnswers(ExchangeStream* stream) {
  v1::ExchangeResponse response;
  while (stream->Read(&response)) {
    absl::MutexLock lock(&mutex_);
    if (!answer_error_.ok()) continue;  // Cancelled; what is still on its way does not count.
    answer_error_ = TakeAnswer(response);
    if (!answer_error_.ok()) stream->Cancel();
  }
  absl::MutexLock lock(&mutex_);
  broken_ = true;
}

absl::Status ServerExchange::TakeAnswer(const v1::ExchangeResponse& response) {
  // After its deadline the exchange no longer owns the vector; the answer will be repeated.
  if (!running_ || expired_) return absl::OkStatus();
  if (written_ == 0) {
    return absl::InternalError(absl::StrCat("server ", address(), " answered a block that was not sent"));
  }
  const Range range = options_.partition.BlockRange(unanswered_.front().index);
  std::vector<float> answer;
  if (absl::Status status = ReadBlock(response.block(), range, &answer); !status.ok()) {
    return absl::InternalError(absl::StrCat("server ", address(), ": ", status.message()));
  }
  ApplyElasticAnswer(answer, vector_.subspan(range.begin, range.size()));
  unanswered_.pop_front();
  --written_;
  deadline_ = started_ + call_.timeout;
  return absl::OkStatus();
}

void ServerExchange::KeepUnanswered() {
  for (Block& block : unanswered_) {
    if (!block.kept.empty()) continue;
    const Range range = options_.partition.BlockRange(block.index);
    absl::Span<const float> values = vector_.subspan(range.begin, range.size());
    block.kept.assign(values.begin(), values.end());
  }
}

// The server has lost what it had applied of earlier exchanges: there is nothing left to settle.
void ServerExchange::ForgetKept() {
  unanswered_.erase(
      std::remove_if(unanswered_.begin(), unanswered_.end(), [](const Block& block) { return !block.kept.empty(); }),
      unanswered_.end());
}

// Makes sure that there is a stream that has not broken yet.
void ServerExchange::OpenStream() {
  {
    absl::MutexLock lock(&mutex_);
    if (stream_ != nullptr && !broken_) return;
  }
  CloseStream().IgnoreError();  // It broke while nobody used it.
  std::shared_ptr<ExchangeStream> stream = options_.calls->OpenExchange();
  {
    absl::MutexLock lock(&mutex_);
    stream_ = stream;
    broken_ = false;
    written_ = 0;
    answer_error_ = absl::OkStatus();
    if (expired_ || stop_) stream_->Cancel();
  }
  header_sequence_ = 0;
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
  // A write that fails comes before the reader has seen why; only a stream that still lives is cancelled.
  {
    absl::MutexLock lock(&mutex_);
    auto broken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return broken_; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&broken), stop_ || expired_ ? absl::ZeroDuration() : kRetryPause)) {
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
