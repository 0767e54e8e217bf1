#ifndef HOOKE_WORKER_RANK_SERVER_EXCHANGE_H_
#define HOOKE_WORKER_RANK_SERVER_EXCHANGE_H_

// This rank's exchanges with one server: the blocks that its slice and the server's shard have in common. Made by
// ExchangeClient (exchange.h), one for each server, so that a server that fails holds up nobody else.
//
// One thread opens streams, writes and retries; a second one reads answers as long as a stream lives. At most
// `window_blocks` blocks are unanswered. When a stream breaks, those are sent again on the next one, with the same
// sequence: the server knows which it has applied and repeats its answer, so each block is applied exactly once. Blocks
// still unanswered at the deadline are kept, with the values they were sent with, and settled before the next exchange
// begins: an answer is a difference and may be applied late.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "worker/rank/server_calls.h"

namespace hooke {

struct ServerExchangeOptions {
  ServerCalls* calls = nullptr;  // Outlives the exchange.
  v1::Sender sender;
  Partition partition{0};
  Range blocks;  // Of the partition; not empty.
  uint32_t window_blocks = 16;
  // The server does not know the job (it lost its disk): create the shard there again from `vector`. Runs in the
  // exchange's thread.
  std::function<absl::Status(absl::Span<const float> vector, absl::Time deadline)> recreate;
};

// Whether a server's answer means that trying again is of no use: this incarnation is replaced, the job has ended, a
// message was wrong.
bool IsFatalExchangeError(const absl::Status& status);

struct ExchangeCall {
  uint64_t sequence = 1;  // Grows from exchange to exchange.
  absl::Duration timeout;
  // A server that failed the last exchange gets this long to give a first answer, so that a group does not wait out
  // every timeout; once it answers, `timeout` counts.
  absl::Duration probe_timeout;
};

class ServerExchange {
 public:
  explicit ServerExchange(ServerExchangeOptions options);
  ~ServerExchange();
  ServerExchange(const ServerExchange&) = delete;
  ServerExchange& operator=(const ServerExchange&) = delete;

  const std::string& address() const { return options_.calls->address(); }

  // Begins an exchange; returns at once. Only this object touches its blocks of `vector` until Wait returns.
  void Start(const ExchangeCall& call, absl::Span<float> vector);

  // Ends with the exchange, or at its deadline.
  //   OK                    every block was applied exactly once.
  //   DEADLINE_EXCEEDED     the server did not answer in time; the message carries the last error.
  //   anything else         what the server said; IsFatalExchangeError holds: the rank gives up.
  absl::Status Wait();

 private:
  struct Block {
    uint64_t index = 0;
    uint64_t sequence = 0;
    std::vector<float> kept;  // The values it was sent with; empty while its exchange runs: they are in the vector.
  };

  void Run();
  absl::Status Exchange();
  absl::Status Attempt();
  bool NextToWrite(v1::ExchangeRequest* header, v1::ExchangeRequest* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadAnswers(ExchangeStream* stream);
  absl::Status TakeAnswer(const v1::ExchangeResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepUnanswered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenStream();
  absl::Status CloseStream();
  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return unanswered_.empty() && next_block_ == options_.blocks.end;
  }
  bool CanWrite() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerExchangeOptions options_;

  // Of the writing thread alone.
  std::thread reader_;
  uint64_t header_sequence_ = 0;  // Of the last header on this stream; 0: none yet.

  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // Between Start and the end of the exchange.
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;  // The running exchange's deadline has passed.
  bool suspect_ ABSL_GUARDED_BY(mutex_) = false;  // The exchange before failed.
  absl::Time started_ ABSL_GUARDED_BY(mutex_);
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  ExchangeCall call_ ABSL_GUARDED_BY(mutex_);
  absl::Span<float> vector_ ABSL_GUARDED_BY(mutex_);  // Empty while no exchange runs.
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_block_ ABSL_GUARDED_BY(mutex_) = 0;       // First one never written in this exchange.
  std::deque<Block> unanswered_ ABSL_GUARDED_BY(mutex_);  // In the order written.
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;            // Of those, how many on this stream.
  std::shared_ptr<ExchangeStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;        // The stream's reader has ended.
  absl::Status answer_error_ ABSL_GUARDED_BY(mutex_);  // Why our side broke it.

  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_SERVER_EXCHANGE_H_
