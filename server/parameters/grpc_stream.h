#ifndef HOOKE_SERVER_PARAMETERS_GRPC_STREAM_H_
#define HOOKE_SERVER_PARAMETERS_GRPC_STREAM_H_

// One stream of Exchange over gRPC. It reads a message, has it applied, and sends the answer. GoOn goes as far as it
// can without waiting. So a stream that waits holds memory for its message, but no thread.
//
// gRPC receives the next message and sends the answer at the same time, as far as its flow control allows.

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/exchange_session.h"
#include "server/parameters/open_calls.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"

namespace spdlog {
class logger;
}

namespace hooke {

// Calls of GoOn come one after another, perhaps from different threads. gRPC deletes the stream when it is done.
class GrpcStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Options {
    grpc::CallbackServerContext* context = nullptr;  // Outlives the stream.
    ParameterStore* store = nullptr;                 // Outlives the stream, as `calls` and `seats` do.
    OpenCalls* calls = nullptr;
    RankSeats* seats = nullptr;
    spdlog::logger* logger = nullptr;
    uint64_t number = 0;  // Later streams have higher numbers.
    // Called when GoOn must be called: `moved` on a thread of gRPC, once a message has come or an answer has gone;
    // `resumes` on any thread, once others need not be waited for any more. Neither may wait.
    std::function<void(GrpcStream&)> moved;
    std::function<void(GrpcStream&)> resumes;
    std::function<void(GrpcStream&)> opened;      // Called in GoOn, once shard() is known.
    std::function<void()> left;                   // Called in GoOn, when the stream has left its seat.
    std::function<void(GrpcStream&)> destroying;  // Called on one of gRPC's threads.
  };
  // Begins to receive. If the server stops or `refusal` is not OK, the stream ends at once.
  GrpcStream(Options options, const absl::Status& refusal);
  ~GrpcStream() override;

  enum class Next {
    kResumed,  // `moved` will be called, or has been. Another thread may be in GoOn already.
    kOthers,   // The same with `resumes`, as the message waits for other groups: look at the shard when it must be.
    kLoad,     // Call Loaded with the status of ParameterStore::Load for job_id(), then GoOn.
    kSeat,     // Call GoOn when another stream has left, and at give_up().
    kEnded,    // gRPC ends the stream.
  };
  Next GoOn();

  // Null before the opening. Only the caller of GoOn may ask, before it calls, and `opened`.
  const std::shared_ptr<Shard>& shard() const { return exchange_.shard(); }
  // Whether the thread that calls `moved` should call GoOn itself. To wake another thread takes longer than a small
  // message, and a large one goes through the other core's cache. But a message that ends a round has all groups'
  // values applied, and gRPC's thread must not be kept for so long. Only `moved` may ask.
  bool GoesOnAtOnce() const;
  // Valid after kLoad.
  const std::string& job_id() const { return opening_.job_id(); }
  void Loaded(absl::Status status) { outcome_ = std::move(status); }
  // Valid after kSeat.
  absl::Time give_up() const { return seat_->give_up(); }
  // Ends the stream, but not before its contribution has had its round. May be called on any thread until `destroying`.
  void Cancel() const { options_.context->TryCancel(); }

  // Called by gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  enum class Step { kMessage, kOpening, kSeat, kApplied };

  Next TakeMessage();
  Next Open();
  Next TakeSeat();
  Next Apply(std::optional<absl::Status> status);
  Next Receive();
  Next End(const absl::Status& status);
  void Completed();

  const Options options_;
  const OpenCalls::Call call_;
  ExchangeSession exchange_;
  std::optional<RankSeats::Stream> seat_;
  Step step_ = Step::kMessage;
  v1::Sender opening_;
  absl::Status outcome_;  // Of the last wait for other groups, or for the shard.
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answer_;
  // The read and the write that gRPC works on; 0 to 2.
  std::atomic<int> pending_{0};
  bool read_ = false;    // Whether the last read has brought a message.
  bool written_ = true;  // Whether the last write has succeeded.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_GRPC_STREAM_H_
