#include "server/service/worker_sessions.h"

#include <grpc/support/time.h>

#include <utility>

#include "clocks/steady_time.h"
#include "server/coordinator/session_outbox.h"
#include "server/service/to_grpc.h"

namespace hooke {
namespace {

// Acknowledgements that wait for other commands are sent after about kSeenWithin.
constexpr absl::Duration kSeenWithin = absl::Seconds(1);
constexpr absl::Duration kWritePatience = absl::Seconds(5);
constexpr absl::Duration kFlushEvery = absl::Milliseconds(250);

// A message whose decoded form fits into this many bytes needs no further memory. A rank's usual profile has about this
// size.
constexpr size_t kArenaBytes = 256 << 10;

gpr_timespec After(absl::Duration duration) {
  // Uses the monotonic clock, because nobody can set it back and so prolong the wait.
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(duration), GPR_TIMESPAN));
}

grpc::ByteBuffer Encoded(const v1::WorkerCommand& command) {
  const grpc::Slice bytes(command.SerializeAsString());
  return grpc::ByteBuffer(&bytes, 1);
}

google::protobuf::ArenaOptions With(std::vector<char>& block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block.data();
  options.initial_block_size = block.size();
  return options;
}

}  // namespace

// A worker's stream. Under way are at most one read and one write, or a single operation of another type.
struct WorkerSessions::Stream {
  grpc::ServerContext context;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream{&context};
  SessionId session = 0;  // 0: no hello yet.
  bool takes_batches = false;

  grpc::ByteBuffer message;  // Owned by the read under way.
  std::vector<v1::WorkerCommand> commands;
  size_t sent = 0;  // Index in `commands` of the command that is being written, or that is written next.
  bool writing = false;
  bool written_any = false;                 // A command has been written, and with it the call's headers.
  absl::Time taken = absl::InfinitePast();  // When `commands` was taken from the Coordinator.

  bool ended = false;  // The session is over. The call is finished as soon as no write is under way.
  grpc::Status status;
  absl::Time cancel_at = absl::InfiniteFuture();  // If a write is still under way at this time, the call is cancelled.

  Operation accepted{this, &WorkerSessions::Accepted};
  Operation hello_read{this, &WorkerSessions::HelloRead};
  Operation message_read{this, &WorkerSessions::MessageRead};
  Operation written{this, &WorkerSessions::Written};
  Operation finished{this, &WorkerSessions::Finished};
};

// ---- Alarm ----

void WorkerSessions::Alarm::Ring() {
  absl::MutexLock lock(&mutex_);
  if (queue_ == nullptr || is_set_) return;
  is_set_ = true;
  alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
}

void WorkerSessions::Alarm::Arm(grpc::CompletionQueue* queue) {
  absl::MutexLock lock(&mutex_);
  queue_ = queue;
}

void WorkerSessions::Alarm::Disarm() { Arm(nullptr); }

void WorkerSessions::Alarm::Rang() {
  absl::MutexLock lock(&mutex_);
  is_set_ = false;
}

// ---- The thread ----

WorkerSessions::WorkerSessions(Coordinator& coordinator, std::function<Instant()> clock)
    : coordinator_(coordinator), clock_(std::move(clock)), arena_block_(kArenaBytes), arena_(With(arena_block_)) {
  coordinator_.OnReady([alarm = alarm_] { alarm->Ring(); });
}

WorkerSessions::~WorkerSessions() {
  Join();
  coordinator_.OnReady(nullptr);
  if (queue_ == nullptr) return;
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {  // Takes the alarm's last event.
  }
}

void WorkerSessions::Serve(Service& service) {
  service_ = &service;
  accepting_ = true;
  thread_ = std::thread([this] { Run(); });
}

void WorkerSessions::Join() {
  if (thread_.joinable()) thread_.join();
}

void WorkerSessions::Run() {
  Accept();
  while (accepting_ || !streams_.empty()) HandleNext();
}

void WorkerSessions::HandleNext() {
  // Commands that become ready from here on ring the alarm. SendReady sends the earlier ones.
  alarm_->Arm(queue_.get());
  SendReady();
  void* tag = nullptr;
  bool ok = false;
  const auto next = queue_->AsyncNext(&tag, &ok, After(kFlushEvery));
  alarm_->Disarm();
  if (next != grpc::CompletionQueue::GOT_EVENT) return;
  if (tag == alarm_.get()) return alarm_->Rang();
  const Operation& operation = *static_cast<Operation*>(tag);
  (this->*operation.then)(*operation.stream, ok);
}

void WorkerSessions::SendReady() {
  for (const Coordinator::Ready& ready : coordinator_.TakeReady()) {
    const auto found = sessions_.find(ready.session);
    if (found == sessions_.end()) continue;
    if (ready.open) {
      Send(*found->second);
    } else {
      Cancel(*found->second);
    }
  }
  const absl::Time now = SteadyTime();
  if (now < next_flush_) return;
  next_flush_ = now + kFlushEvery;
  for (const auto& [session, stream] : sessions_) {
    if (now - stream->taken >= kSeenWithin) Send(*stream);
  }
  for (const auto& [key, stream] : streams_) {
    if (stream->ended && stream->writing && now >= stream->cancel_at) Cancel(*stream);
  }
}

// ---- Streams ----

void WorkerSessions::Accept() {
  auto owned = std::make_unique<Stream>();
  Stream& stream = *owned;
  streams_[&stream] = std::move(owned);
  service_->RequestWorkerSession(&stream.context, &stream.stream, queue_.get(), queue_.get(), &stream.accepted);
}

void WorkerSessions::Accepted(Stream& stream, bool ok) {
  if (!ok) {
    accepting_ = false;
    return Finished(stream, ok);
  }
  Accept();
  stream.stream.Read(&stream.message, &stream.hello_read);
}

const v1::WorkerMessage* WorkerSessions::Decode(grpc::ByteBuffer& bytes) {
  arena_.Reset();
  auto* message = google::protobuf::Arena::CreateMessage<v1::WorkerMessage>(&arena_);
  grpc::ProtoBufferReader reader(&bytes);
  const bool whole = message->ParseFromZeroCopyStream(&reader) && reader.status().ok();
  bytes.Clear();
  return whole ? message : nullptr;
}

void WorkerSessions::HelloRead(Stream& stream, bool ok) {
  const v1::WorkerMessage* message = ok ? Decode(stream.message) : nullptr;
  if (message == nullptr || !message->has_hello()) {
    return End(stream, absl::InvalidArgumentError("a worker's first message is its hello"));
  }
  const absl::StatusOr<SessionId> session = coordinator_.Hello(message->hello(), clock_());
  if (!session.ok()) return End(stream, session.status());
  stream.session = *session;
  stream.takes_batches = message->hello().takes_batches();
  sessions_[*session] = &stream;
  stream.stream.Read(&stream.message, &stream.message_read);
}

void WorkerSessions::MessageRead(Stream& stream, bool ok) {
  if (!ok) return End(stream, absl::OkStatus());
  const v1::WorkerMessage* message = Decode(stream.message);
  if (message == nullptr) return End(stream, absl::InternalError("a worker's message is damaged"));
  const absl::Status status = coordinator_.Message(stream.session, *message, clock_());
  if (!status.ok()) return End(stream, status);
  stream.stream.Read(&stream.message, &stream.message_read);
}

void WorkerSessions::Send(Stream& stream) {
  if (stream.writing || stream.ended) return;
  if (stream.sent == stream.commands.size()) {
    Coordinator::Outgoing outgoing = coordinator_.TakeCommands(stream.session);
    stream.commands = stream.takes_batches ? InBatches(std::move(outgoing.commands)) : std::move(outgoing.commands);
    stream.sent = 0;
    stream.taken = SteadyTime();
    if (!outgoing.open) return Cancel(stream);
    if (stream.commands.empty()) return;
  }
  grpc::WriteOptions options;
  // Lets gRPC buffer all commands but the last, so that they share a packet. The first write of a call must not be
  // buffered: it has the call's headers, is done only when they were sent, and the next write waits for that.
  if (stream.written_any && stream.sent + 1 < stream.commands.size()) options.set_buffer_hint();
  stream.writing = true;
  stream.stream.Write(Encoded(stream.commands[stream.sent]), options, &stream.written);
}

// Cancels the call. The read under way then fails, which ends the session. A write under way fails too.
void WorkerSessions::Cancel(Stream& stream) { stream.context.TryCancel(); }

void WorkerSessions::Written(Stream& stream, bool ok) {
  stream.writing = false;
  stream.written_any = true;
  ++stream.sent;
  if (stream.ended) return stream.stream.Finish(stream.status, &stream.finished);
  if (ok) Send(stream);  // After a failed write the read fails too, and ends the session.
}

void WorkerSessions::End(Stream& stream, const absl::Status& status) {
  stream.ended = true;
  stream.status = ToGrpc(status);
  if (stream.session != 0) {
    sessions_.erase(stream.session);
    coordinator_.Gone(stream.session, clock_());
  }
  // A worker that does not read would keep the write, and so the call, open for ever.
  stream.cancel_at = SteadyTime() + kWritePatience;
  if (stream.writing) return;
  stream.stream.Finish(stream.status, &stream.finished);
}

void WorkerSessions::Finished(Stream& stream, bool) { streams_.erase(&stream); }

}  // namespace hooke
