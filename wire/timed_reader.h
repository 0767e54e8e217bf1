#ifndef HOOKE_WIRE_TIMED_READER_H_
#define HOOKE_WIRE_TIMED_READER_H_

// Reads a server's stream of messages in one thread, with a deadline for each message.

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wire/grpc_status.h"

namespace hooke {

template <typename Message>
class TimedReader {
 public:
  // Starts the call. `start` is called once, like [&](auto* context, auto* queue) { return
  // stub.PrepareAsyncFoo(context, request, queue); }.
  template <typename Start>
  explicit TimedReader(Start start) : reader_(start(&context_, &queue_)) {
    reader_->StartCall(this);
  }

  TimedReader(const TimedReader&) = delete;
  TimedReader& operator=(const TimedReader&) = delete;

  // Cancels the call if it still runs.
  ~TimedReader() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Returns the next message. DEADLINE_EXCEEDED: none came within `wait`; call again. OUT_OF_RANGE: the stream has
  // ended well. Any other error: the stream has failed; all messages before that have been returned.
  absl::StatusOr<Message> Next(absl::Duration wait) {
    // Monotonic, so that it does not move with the machine's clock.
    const gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(absl::ToInt64Nanoseconds(wait), GPR_TIMESPAN));
    while (true) {
      if (state_ == State::kEnded) return end_;
      void* tag;
      bool ok = false;
      const auto event = queue_.AsyncNext(&tag, &ok, deadline);
      if (event != grpc::CompletionQueue::GOT_EVENT) return absl::DeadlineExceededError("no message yet");
      if (state_ == State::kReading && ok) {
        Message message = std::move(message_);
        message_ = Message();
        reader_->Read(&message_, this);
        return message;
      }
      Advance(ok);
    }
  }

 private:
  enum class State { kStarting, kReading, kFinishing, kEnded };

  void Advance(bool ok) {
    if (state_ == State::kFinishing) {
      state_ = State::kEnded;
      end_ = End(status_);
    } else if (state_ == State::kStarting && ok) {
      state_ = State::kReading;
      reader_->Read(&message_, this);
    } else {
      state_ = State::kFinishing;
      reader_->Finish(&status_, this);
    }
  }

  // Turns the call's end into a status. Next gives two codes a meaning of its own, so a server's errors with these
  // codes get others.
  static absl::Status End(const grpc::Status& status) {
    if (status.ok()) return absl::OutOfRangeError("the stream has ended");
    absl::Status end = FromGrpc(status);
    if (absl::IsDeadlineExceeded(end)) return absl::UnavailableError(end.message());
    if (absl::IsOutOfRange(end)) return absl::UnknownError(end.message());
    return end;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  State state_ = State::kStarting;
  Message message_;
  grpc::Status status_;
  absl::Status end_;
  std::unique_ptr<grpc::ClientAsyncReader<Message>> reader_;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_TIMED_READER_H_
