#ifndef HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_

// The seam "calls to a server": what a rank asks of one parameter server. grpc_server_calls.h is the real one,
// in_memory_server.h the one for tests. Status codes are those of proto/parameter_server.proto.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Of a message, 256 KiB: what a message costs is small beside its bytes, and several fit into a window of 16 blocks, so
// that sending, applying and answering overlap.
inline constexpr uint64_t kMessageBlocks = 4;

// One message of an exchange: the values [first, first + values.size()) of the whole vector, whole blocks of it.
struct BlocksToSend {
  uint64_t sequence = 0;
  uint64_t first = 0;
  absl::Span<const float> values;  // As the server will have them: decoded.
  Encoding encoding = {};
  absl::Span<const char> encoded = {};  // What crosses the wire; empty where nothing is compressed: the values do.
  Encoding answered = {};               // Of the answer; one in another encoding is refused.
};

// The answer to such a message.
struct AnsweredBlocks {
  uint64_t sequence = 0;
  uint64_t first = 0;
  std::vector<float> values;
};

// One ParameterServer.Exchange stream, whose messages are encoded alike. One thread writes, another reads at the same
// time; Cancel may come from any. Destroying it cancels; then no other call runs.
class ExchangeStream {
 public:
  virtual ~ExchangeStream() = default;

  // Both block, and return false once the stream is broken or cancelled. What is sent is copied before Write returns.
  virtual bool Write(const BlocksToSend& blocks) = 0;
  // Overwrites `answer`, whose memory is kept. What a server sends that is no answer to anything sent breaks the
  // stream: INTERNAL.
  virtual bool Read(AnsweredBlocks* answer) = 0;
  // Never blocks.
  virtual void Cancel() = 0;
  // Why it broke. Called once, after Read has returned false and while nobody writes.
  virtual absl::Status Finish() = 0;
};

// The initial values of a shard: [shard.begin, shard.end) of `vector`, in blocks of `partition`.
struct InitialValues {
  v1::Sender sender;
  Partition partition;
  Range shard;
  absl::Span<const float> vector;
};

// One server. Thread-safe. Calls fail with DEADLINE_EXCEEDED at their deadline, and with UNAVAILABLE while the server
// cannot be reached.
class ServerCalls {
 public:
  virtual ~ServerCalls() = default;

  virtual const std::string& address() const = 0;  // For messages.
  virtual absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request, absl::Time deadline) = 0;
  virtual absl::Status Initialize(const InitialValues& values, absl::Time deadline) = 0;
  // Gives every message to `sink`, in order, in the calling thread; an error of the sink ends the call with that error.
  virtual absl::Status Pull(const std::string& job_id, absl::Time deadline,
                            const std::function<absl::Status(const v1::PullResponse&)>& sink) = 0;
  virtual absl::StatusOr<v1::PaceResponse> Pace(const v1::PaceRequest& request, absl::Time deadline) = 0;
  // OK: what the server had answered before the call is on its disk.
  virtual absl::Status Save(const std::string& job_id, absl::Time deadline) = 0;
  // Whether the server answers, and what it has the sender's shard from. One attempt, which costs it next to nothing.
  virtual absl::StatusOr<v1::LocateResponse> Locate(const v1::Sender& sender, absl::Time deadline) = 0;
  // Never blocks: a server that cannot be reached shows in Read.
  virtual std::shared_ptr<ExchangeStream> OpenExchange(const v1::Sender& sender) = 0;
};

// host:port -> its calls. Never blocks, never null.
using ServerDialer = std::function<std::unique_ptr<ServerCalls>(const std::string& address)>;

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_
