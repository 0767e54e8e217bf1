#ifndef HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_

// A rank's exchanges with one server: the blocks that the rank's slice and the server's shard have in common.
// ExchangeClient (exchange_client.h) makes one for each server, so that a server that fails does not delay the others.
//
// A message carries several blocks, and at most `window_blocks` blocks are unanswered. One thread opens streams, writes
// and retries. A second thread reads answers as long as a stream lives. A small exchange over a healthy stream is
// written by its caller.
//
// When a stream breaks, unanswered messages are sent again on the next one, with the same sequence. The server knows
// which blocks it has applied and repeats its answer, so each block is applied exactly once. But a server that is
// killed loses the exchanges since its last snapshot: docs/wire.md.
//
// Blocks still unanswered at the deadline are kept, with the values that were sent. The next exchange begins only after
// they were sent again and answered, so an answer may be applied late.
//
// After a failed exchange the server counts as away (server_presence.h). Later exchanges fail at once. Meanwhile the
// thread makes Locate calls to learn whether the server is back.
//
// With compression a message is encoded once, right before it is first written, and its bytes are kept for repeats. The
// group gets the answer together with the values that these bytes stand for. So whatever compression left out remains
// to be sent.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/fragments.h"
#include "algorithms/group_rule.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "worker/exchange/acknowledged_exchanges.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/server_calls.h"
#include "worker/exchange/server_presence.h"

namespace hooke {

struct ServerExchangeOptions {
  ServerCalls* calls = nullptr;  // Outlives the exchange.
  v1::Sender sender;
  Partition partition{0};
  Range blocks;                 // Blocks of the partition; not empty.
  Encoding encoding;            // Encoding of the values sent.
  Encoding answered;            // Encoding of the answers.
  uint32_t window_blocks = 16;  // >= 1.
  // Creates the shard again, after the server has said that it does not know the job (it lost its disk). The caller has
  // the values for it; under some rules `sent` holds distances instead. Runs in the exchange's thread.
  std::function<absl::Status(absl::Time deadline)> recreate;
  // Called when the server becomes absent, with the time since when it is missed. Called with nullopt when it is
  // back. Runs in the exchange's thread. May be empty.
  std::function<void(std::optional<absl::Time> since)> on_presence;
  // Called when the server restarted from a snapshot written at `snapshot` and has lost exchanges. Runs in the
  // exchange's thread. May be empty.
  std::function<void(absl::Time snapshot, const Setback& setback)> on_setback;
};

// Whether trying again is useless after this error from a server. For example, this incarnation is replaced, the job
// has ended, or a message was wrong.
bool IsFatalExchangeError(const absl::Status& status);

struct ExchangeCall {
  uint64_t sequence = 1;  // Each exchange has a higher sequence than the one before.
  ExchangePatience patience;
  // The part of the common blocks that is exchanged (fragments.h); {0, 1} is all of them.
  Cut fragment = {0, 1};
};

// Takes the answer to one block. Called once for each answered block, from several threads at once for different
// blocks, and never after the exchange's end.
using AnswerSink = std::function<void(const BlockAnswer& answer)>;

class ServerExchange {
 public:
  explicit ServerExchange(ServerExchangeOptions options);
  ~ServerExchange();
  // Ends a running exchange soon; no new one begins. The destructor does the same. If Stop was called before, the
  // destructor waits less.
  void Stop();
  ServerExchange(const ServerExchange&) = delete;
  ServerExchange& operator=(const ServerExchange&) = delete;

  const std::string& address() const { return options_.calls->address(); }
  // Whether exchanges skip the server now (ServerPresence::skipped).
  bool Skips() const;
  // The blocks that a call exchanges.
  Range BlocksOf(const ExchangeCall& call) const { return FragmentBlocks(options_.blocks, call.fragment); }

  // Begins an exchange of at least one block and returns at once. `sent` is the whole vector; this object reads the
  // call's blocks of it until Wait returns. Until then a block may change only when `sink` gets its answer.
  //
  // `sink` also gets the answers to blocks left over from earlier exchanges, which may be blocks outside this call.
  // Each comes before the same block is read for this exchange.
  void Start(const ExchangeCall& call, absl::Span<const float> sent, AnswerSink sink);

  // Returns when the exchange ends, or at its deadline.
  //   OK                    Every block was applied exactly once, and the sink got its answer.
  //   DEADLINE_EXCEEDED     The server did not answer in time; the message carries the last error. It comes at once if
  //                         the server is away and the patience skips such servers.
  //   INVALID_ARGUMENT      The server refused a message, or a value to send is not finite and so cannot be compressed.
  //   anything else         The server's own error. IsFatalExchangeError holds, and the rank gives up.
  absl::Status Wait();

 private:
  // A copy of values that were sent. The vector itself goes on changing.
  struct Kept {
    std::vector<float> values;
    std::vector<char> encoded;  // Empty without compression.
  };
  // The content of one message.
  struct Piece {
    Range blocks;
    uint64_t sequence = 0;
    // Null while the vector still has the values: without compression as long as the exchange runs, with compression
    // until the piece is encoded.
    std::shared_ptr<const Kept> kept;
    bool old = false;  // Whether its exchange is over.
  };
  // A message for Write, and the owner of the memory that it points to.
  struct Outgoing {
    BlocksToSend message;
    std::shared_ptr<const Kept> kept;
  };

  void Run();
  void Ask();
  // Takes the answer to a Locate call. If the server has restarted from a snapshot since the last such answer, it
  // reports what the server has lost.
  void NoteOrigin(const v1::LocateResponse& answer);
  void Tell(std::optional<absl::Time> since);
  absl::Status Exchange();
  // Says which limit was exceeded, for an error message. Call it after the deadline has passed.
  std::string WhatTookTooLong() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Attempt();
  absl::Status EncodeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void CutPiece() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Outgoing NextToWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Span<const float> ValuesOf(const Piece& piece) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadAnswers(ExchangeStream* stream);
  // The destination of an answer. `sink` is null if the answer comes too late to count.
  struct Delivery {
    std::shared_ptr<const AnswerSink> sink;
    absl::Span<const float> sent;      // The values that were sent.
    std::shared_ptr<const Kept> kept;  // Owns `sent`; null if `sent` points into the vector.
    bool earlier = false;
  };
  absl::StatusOr<Delivery> CheckAnswer(const AnsweredBlocks& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(const AnsweredBlocks& answer, const Delivery& to) const;
  void NoteAnswered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepUnanswered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenStream();
  absl::Status CloseStream();
  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return unanswered_.empty() && next_block_ == blocks_.end;
  }
  bool CanWrite() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CanWriteInCaller() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t NextPieceBlocks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(absl::Status result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerExchangeOptions options_;

  // Only the writing thread uses these fields.
  std::thread reader_;
  // The argument of the last call of on_presence.
  std::optional<absl::Time> told_;
  // Whether a stream was opened since the server last answered a Locate call. If so, the server may have restarted.
  bool asks_ = false;
  // The time at which a failed Locate call is repeated while `asks_` is true.
  absl::Time asks_again_ = absl::InfiniteFuture();
  // The last acknowledged exchange when `asks_` became true.
  uint64_t last_before_ = 0;
  // Restored.loaded_unix_us of the last answer to a Locate call. It differs between two starts of the server.
  std::optional<int64_t> start_;

  mutable absl::Mutex mutex_;
  // All times are SteadyTime(). Waits are those of absl::Mutex: SteadyCondition made some exchanges slower.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // True from Start to the end of the exchange.
  bool caller_writes_ ABSL_GUARDED_BY(mutex_) =
      // Start writes this exchange itself. The thread takes over if the stream breaks or the deadline passes.
      false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;     // Start is still writing.
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;     // The running exchange's deadline has passed.
  ServerPresence presence_ ABSL_GUARDED_BY(mutex_);  // Only the exchange's thread changes it.
  ExchangeProgress progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  ExchangeCall call_ ABSL_GUARDED_BY(mutex_);
  absl::Span<const float> sent_ ABSL_GUARDED_BY(mutex_);            // Empty while no exchange runs.
  std::shared_ptr<const AnswerSink> sink_ ABSL_GUARDED_BY(mutex_);  // Null while no exchange runs.
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  Range blocks_ ABSL_GUARDED_BY(mutex_);                  // The call's blocks.
  uint64_t next_block_ ABSL_GUARDED_BY(mutex_) = 0;       // The first block not yet written in this exchange.
  std::deque<Piece> unanswered_ ABSL_GUARDED_BY(mutex_);  // In the order written.
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;            // How many of unanswered_ were written on this stream.
  std::shared_ptr<ExchangeStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;        // The stream's reader has ended.
  absl::Status answer_error_ ABSL_GUARDED_BY(mutex_);  // Why we cancelled the stream because of an answer.

  AcknowledgedExchanges acknowledged_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_
