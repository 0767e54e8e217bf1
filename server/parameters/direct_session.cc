#include "server/parameters/direct_session.h"

#include <limits>
#include <utility>

#include "clocks/steady_time.h"

namespace hooke {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// How long a patient call waits for the next piece of a message. A rank that is in the middle of an exchange sends the
// next piece within that time.
constexpr absl::Duration kPatience = absl::Milliseconds(2);
// After so many messages other connections have their turn, if they lack threads.
constexpr int kMessagesInARow = 16;

}  // namespace

DirectSession::DirectSession(Options options)
    : options_(std::move(options)),
      frames_(options_.descriptor, kPatience),
      exchange_(options_.store,
                [this](absl::Status status) {
                  outcome_ = std::move(status);
                  options_.resumes(*this);
                }),
      expires_(kNever) {
  seat_.emplace(options_.seats, options_.number, [this] { frames_.Shutdown(); });
}

int DirectSession::Release() {
  seat_.reset();
  return frames_.Release();
}

DirectSession::Next DirectSession::GoOn(absl::FunctionRef<bool()> patient) {
  const auto waiting = patient() ? ResumableFrames::Waiting::kBriefly : ResumableFrames::Waiting::kNever;
  std::optional<Next> next;
  if (step_ == Step::kApplied) next = Apply(exchange_.Resume(std::move(outcome_)));
  for (int answers = 0; !next.has_value();) {
    switch (step_) {
      case Step::kHeader:
        if (answers == kMessagesInARow) {
          // A ready socket is reported again, behind the others.
          if (!patient()) return Next::kMessage;
          answers = 0;
        }
        next = ReceiveHeader(waiting);
        break;
      case Step::kPayload:
        next = ReceivePayload(waiting);
        break;
      case Step::kApplied:  // Never here: Apply has set kAnswer, or `next`.
      case Step::kAnswer:
        next = SendAnswer(waiting);
        ++answers;
        break;
    }
  }
  return *next;
}

std::optional<DirectSession::Next> DirectSession::ReceiveHeader(ResumableFrames::Waiting waiting) {
  absl::StatusOr<std::optional<ValuesHeader>> header = frames_.ReceiveHeader(waiting);
  if (!header.ok()) return Breaks(header.status());
  if (!header->has_value()) return frames_.is_within() ? Stalls(Next::kMessage) : Next::kMessage;
  header_ = **header;
  if (absl::Status status = exchange_.CheckHeader(header_); !status.ok()) return Refuses(status);
  payload_ = PayloadIn(values_, header_);
  answered_ = PayloadIn(answer_, exchange_.AnswerHeader(header_));
  step_ = Step::kPayload;
  return std::nullopt;
}

std::optional<DirectSession::Next> DirectSession::ReceivePayload(ResumableFrames::Waiting waiting) {
  absl::StatusOr<bool> received = frames_.ReceivePayload(payload_, waiting);
  if (!received.ok()) return Breaks(received.status());
  if (!*received) return Stalls(Next::kMessage);
  expires_ = kNever;
  step_ = Step::kApplied;  // Set before Begin, because another thread may go on before Begin has returned.
  return Apply(exchange_.Begin(header_, payload_, answered_));
}

std::optional<DirectSession::Next> DirectSession::Apply(std::optional<absl::Status> status) {
  if (!status.has_value()) return Next::kOthers;
  if (!status->ok()) return Refuses(*status);
  step_ = Step::kAnswer;
  return std::nullopt;
}

std::optional<DirectSession::Next> DirectSession::SendAnswer(ResumableFrames::Waiting waiting) {
  absl::StatusOr<bool> sent = frames_.SendPayload(exchange_.AnswerHeader(header_), answered_, waiting);
  if (!sent.ok()) return Breaks(sent.status());
  if (!*sent) return Stalls(Next::kRoom);
  expires_ = kNever;
  step_ = Step::kHeader;
  return std::nullopt;
}

// Begins the time that the peer has, unless it has begun. The clock is read only here, not for each message.
DirectSession::Next DirectSession::Stalls(Next next) {
  if (expires_ == kNever) expires_ = absl::ToUnixNanos(SteadyTime() + options_.message_timeout);
  return next;
}

DirectSession::Next DirectSession::Refuses(const absl::Status& why) {
  refusal_ = why;
  return Next::kEnded;
}

DirectSession::Next DirectSession::Breaks(const absl::Status& why) {
  if (absl::IsInvalidArgument(why)) refusal_ = why;
  return Next::kEnded;
}

}  // namespace hooke
