#ifndef HOOKE_SERVER_PARAMETERS_DIRECT_SESSION_H_
#define HOOKE_SERVER_PARAMETERS_DIRECT_SESSION_H_

// The exchanges of one connection without gRPC: it reads a message, has it applied, and sends the answer. GoOn goes as
// far as it can without waiting, and says what must happen before the next call. So a connection that waits holds
// memory for its message, but no thread.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/parameters/exchange_session.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"
#include "wire/frame.h"
#include "wire/resumable_frames.h"

namespace hooke {

// Calls of GoOn come one after another, perhaps from different threads. Shutdown and expires() may be called by any.
class DirectSession {
 public:
  struct Options {
    int descriptor = -1;              // A connected socket, whose opening has been read. The session closes it.
    ParameterStore* store = nullptr;  // Outlives the session.
    RankSeats* seats = nullptr;       // Outlives the session.
    uint64_t number = 0;              // Later sessions have higher numbers.
    // How long a peer may take for the rest of a message, and to read an answer.
    absl::Duration message_timeout;
    // Called when a session that waits for other groups can go on, on any thread. It must not wait, and must have GoOn
    // called.
    std::function<void(DirectSession&)> resumes;
  };
  explicit DirectSession(Options options);

  uint64_t number() const { return options_.number; }
  // Before GoOn, open exchange() and take seat().
  ExchangeSession& exchange() { return exchange_; }
  RankSeats::Stream& seat() { return *seat_; }

  enum class Next {
    kMessage,  // Call GoOn when the peer has sent more.
    kRoom,     // Call GoOn when the peer has read more.
    kOthers,   // `resumes` will be called, or has been. Another thread may be in GoOn already.
    kEnded,    // Do not call GoOn any more. See refusal().
  };
  // While `patient` returns true, the call may wait a few milliseconds for the peer, and takes one message after
  // another.
  Next GoOn(absl::FunctionRef<bool()> patient);
  // Valid after kEnded. Says why the peer is refused; OK: the connection ended by itself.
  const absl::Status& refusal() const { return refusal_; }

  // The time by which the peer must have sent the rest of its message or read the answer. It is centuries away while
  // the peer owes neither.
  absl::Time expires() const { return absl::FromUnixNanos(expires_); }
  void Shutdown() { frames_.Shutdown(); }
  int descriptor() const { return frames_.descriptor(); }
  // Leaves the seat, and gives the descriptor to the caller. No other call may come after this one.
  int Release();

 private:
  enum class Step { kHeader, kPayload, kApplied, kAnswer };

  // Each does one step. nullopt: go on with the next one.
  std::optional<Next> ReceiveHeader(ResumableFrames::Waiting waiting);
  std::optional<Next> ReceivePayload(ResumableFrames::Waiting waiting);
  std::optional<Next> Apply(std::optional<absl::Status> status);
  std::optional<Next> SendAnswer(ResumableFrames::Waiting waiting);
  Next Stalls(Next next);
  Next Refuses(const absl::Status& why);
  // Ends after an error of the connection. Bytes that are no message are refused.
  Next Breaks(const absl::Status& why);

  const Options options_;
  ResumableFrames frames_;
  ExchangeSession exchange_;
  std::optional<RankSeats::Stream> seat_;
  Step step_ = Step::kHeader;
  // The current message and its answer. Their memory is used again.
  ValuesHeader header_;
  std::vector<float> values_;
  std::vector<float> answer_;
  absl::Span<char> payload_;
  absl::Span<char> answered_;
  absl::Status outcome_;  // Of the wait for other groups that has ended.
  absl::Status refusal_;
  std::atomic<int64_t> expires_;  // In nanoseconds of SteadyTime.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_DIRECT_SESSION_H_
