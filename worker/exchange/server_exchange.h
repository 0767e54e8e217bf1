#ifndef HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_

// This rank's exchanges with one server: the blocks that its slice and the server's shard have in common. Made by
// ExchangeClient (exchange.h), one for each server, so that a server that fails holds up nobody else.
//
// A message carries several blocks, and at most `window_blocks` blocks are unanswered. One thread opens streams, writes
// and retries; a second one reads answers as long as a stream lives; a small exchange over a stream that is well is
// written by its caller. When a stream breaks, what is unanswered is sent again on the next one, with the same
// sequence: the server knows which blocks it has applied and repeats its answer, so each block is applied exactly once.
// But a server that is killed takes back what it answered since its last snapshot: docs/wire.md.
// Blocks still unanswered at the deadline are kept, with the values they were sent with, and settled before the next
// exchange begins: an answer may be applied late.
//
// An exchange that failed makes the server away (server_presence.h): later ones end at once, as if they had failed, and
// the thread asks the server meanwhile whether it is back.
//
// Where the exchange is compressed, a message is encoded once, right before it is first written, and kept: it is the
// same bytes when it is sent again, and its answer is given to the group with the values that these bytes stand for. So
// what compression has left out is still to be sent.

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
#include "worker/exchange/acknowledged_exchanges.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/server_calls.h"
#include "worker/exchange/server_presence.h"

namespace hooke {

struct ServerExchangeOptions {
  ServerCalls* calls = nullptr;  // Outlives the exchange.
  v1::Sender sender;
  Partition partition{0};
  Range blocks;                 // Of the partition; not empty.
  Encoding encoding;            // Of what is sent,
  Encoding answered;            // and of what is answered.
  uint32_t window_blocks = 16;  // >= 1.
  // The server does not know the job (it lost its disk): create the shard there again from `vector`. Runs in the
  // exchange's thread.
  std::function<absl::Status(absl::Span<const float> vector, absl::Time deadline)> recreate;
  // The server begins to be away, with since when, or ends to be (nullopt). Runs in the exchange's thread. May be
  // empty.
  std::function<void(std::optional<absl::Time> since)> on_presence;
  // The server was started again, from a snapshot written at `snapshot`, and has lost exchanges. As on_presence.
  std::function<void(absl::Time snapshot, const Setback& setback)> on_setback;
};

// Whether a server's answer means that trying again is of no use: this incarnation is replaced, the job has ended, a
// message was wrong.
bool IsFatalExchangeError(const absl::Status& status);

struct ExchangeCall {
  uint64_t sequence = 1;  // Grows from exchange to exchange.
  ExchangePatience patience;
  // What part is exchanged of what rank and server have in common (fragments.h); {0, 1}: all.
  Cut fragment = {0, 1};
};

// What a group does with an answer to one block. Called once for each answered block, for different blocks from several
// threads at once, and never after the exchange's end.
using AnswerSink = std::function<void(const BlockAnswer& answer)>;

class ServerExchange {
 public:
  explicit ServerExchange(ServerExchangeOptions options);
  ~ServerExchange();
  // Nothing is begun any more, and what runs ends soon. The destructor, which does the same, then waits for less.
  void Stop();
  ServerExchange(const ServerExchange&) = delete;
  ServerExchange& operator=(const ServerExchange&) = delete;

  const std::string& address() const { return options_.calls->address(); }
  // ServerPresence::skipped.
  bool Skips() const;
  // The blocks that a call exchanges.
  Range BlocksOf(const ExchangeCall& call) const { return FragmentBlocks(options_.blocks, call.fragment); }

  // Begins an exchange, of at least one block; returns at once. `sent` is the whole vector, of which this object reads
  // the call's blocks until Wait returns; until then a block changes only when `sink` gets its answer. The answers to
  // blocks left over from earlier exchanges, which may be others, go to `sink`, too, before a later block of theirs is
  // read.
  void Start(const ExchangeCall& call, absl::Span<const float> sent, AnswerSink sink);

  // Ends with the exchange, or at its deadline.
  //   OK                    every block was applied exactly once, and its answer given to the sink.
  //   DEADLINE_EXCEEDED     the server did not answer in time; the message carries the last error. At once where it is
  //                         away and the patience skips such servers.
  //   INVALID_ARGUMENT      also: a value to be sent is not finite, and cannot be compressed.
  //   anything else         what the server said; IsFatalExchangeError holds: the rank gives up.
  absl::Status Wait();

 private:
  // What was sent, apart from the vector, which goes on changing.
  struct Kept {
    std::vector<float> values;
    std::vector<char> encoded;  // Empty where nothing is compressed.
  };
  // What one message carries.
  struct Piece {
    Range blocks;
    uint64_t sequence = 0;
    // Null while its exchange runs and nothing is compressed, or it is not encoded yet: its values are in the vector.
    std::shared_ptr<const Kept> kept;
    bool old = false;  // Its exchange is over.
  };
  // A piece on its way to Write, which holds what it points to.
  struct Outgoing {
    BlocksToSend message;
    std::shared_ptr<const Kept> kept;
  };

  void Run();
  void Ask();
  // Says what the server has lost, where it was started from a snapshot since the last such answer.
  void NoteOrigin(const v1::LocateResponse& answer);
  void Tell(std::optional<absl::Time> since);
  absl::Status Exchange();
  // Once the deadline has passed.
  std::string WhatTookTooLong() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Attempt();
  absl::Status EncodeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void CutPiece() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Outgoing NextToWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Span<const float> ValuesOf(const Piece& piece) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadAnswers(ExchangeStream* stream);
  // Who gets an answer: `sink` is null where it comes too late to count.
  struct Delivery {
    std::shared_ptr<const AnswerSink> sink;
    absl::Span<const float> sent;      // What is answered; points into `kept`, where that is not null,
    std::shared_ptr<const Kept> kept;  // else into what the exchange sends.
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
  bool CanWriteDirectly() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t NextPieceBlocks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(absl::Status result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerExchangeOptions options_;

  // The writing thread alone uses these.
  std::thread reader_;
  // The last argument of on_presence.
  std::optional<absl::Time> told_;
  // The server may have been started again since it last answered a question: a stream was opened since.
  bool asks_ = false;
  // When a question that failed is repeated for the sake of `asks_`.
  absl::Time asks_again_ = absl::InfiniteFuture();
  // The last exchange that was acknowledged when `asks_` became true.
  uint64_t last_before_ = 0;
  // Restored.loaded_unix_us of the last answer, which tells one start of the server from another.
  std::optional<int64_t> start_;

  mutable absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;     // Between Start and the end of the exchange.
  bool direct_ ABSL_GUARDED_BY(mutex_) = false;      // Start writes this exchange itself; the thread has no part in it,
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;     // unless its stream breaks; Start is still at it.
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;     // The running exchange's deadline has passed.
  ServerPresence presence_ ABSL_GUARDED_BY(mutex_);  // Changed by the thread alone.
  ExchangeProgress progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  ExchangeCall call_ ABSL_GUARDED_BY(mutex_);
  absl::Span<const float> sent_ ABSL_GUARDED_BY(mutex_);            // Empty while no exchange runs.
  std::shared_ptr<const AnswerSink> sink_ ABSL_GUARDED_BY(mutex_);  // Null while no exchange runs.
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  Range blocks_ ABSL_GUARDED_BY(mutex_);                  // Of the call.
  uint64_t next_block_ ABSL_GUARDED_BY(mutex_) = 0;       // First one never written in this exchange.
  std::deque<Piece> unanswered_ ABSL_GUARDED_BY(mutex_);  // In the order written.
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;            // Of those, how many on this stream.
  std::shared_ptr<ExchangeStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;        // The stream's reader has ended.
  absl::Status answer_error_ ABSL_GUARDED_BY(mutex_);  // Why our side broke it.

  AcknowledgedExchanges acknowledged_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_EXCHANGE_H_
