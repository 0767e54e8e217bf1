#ifndef HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_

// The calls that a rank makes to one parameter server, as an interface. grpc_server_calls.h implements it for real
// servers, in_memory_server.h for tests. Status codes are those of proto/parameter_server.proto.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Most blocks in a message: 256 KiB. The fixed cost of such a message is relatively small. Several messages still fit
// into a window of 16 blocks, so that sending, applying and answering overlap.
inline constexpr uint64_t kMessageBlocks = 4;

// One message of an exchange. It carries whole blocks: the values [first, first + values.size()) of the whole vector.
struct BlocksToSend {
  uint64_t sequence = 0;
  uint64_t first = 0;
  absl::Span<const float> values;  // The values as the server will decode them.
  Encoding encoding = {};
  absl::Span<const char> encoded = {};  // The encoded values; empty without compression, because `values` is the
                                        // payload then.
  Encoding answered = {};               // The encoding that the answer must have.
};

// A server's answer to one BlocksToSend.
struct AnsweredBlocks {
  uint64_t sequence = 0;
  uint64_t first = 0;
  std::vector<float> values;
};

// One ParameterServer.Exchange stream; all its messages have one encoding. One thread may write while another reads;
// any thread may call Cancel. The destructor cancels the stream; no other call may be running then.
class ExchangeStream {
 public:
  virtual ~ExchangeStream() = default;

  // Write and Read block, and return false once the stream is broken or cancelled. Write copies the values before it
  // returns.
  virtual bool Write(const BlocksToSend& blocks) = 0;
  // Overwrites `answer` and reuses its memory. An answer to something that was not sent breaks the stream with
  // INTERNAL.
  virtual bool Read(AnsweredBlocks* answer) = 0;
  // Breaks the stream. Never blocks.
  virtual void Cancel() = 0;
  // Returns why the stream broke. Called once, after Read has returned false and while nobody writes.
  virtual absl::Status Finish() = 0;
};

// The values of a shard: [shard.begin, shard.end) of `vector`, in blocks of `partition`.
struct InitialValues {
  v1::Sender sender;
  Partition partition;
  Range shard;
  absl::Span<const float> vector;
  // The values are the center as it was after this step of the job's only group. 0: they are the initial values, or the
  // center before the group's first step.
  uint64_t sequence = 0;
};

// A rank's own state that a server keeps.
struct StateToKeep {
  v1::KeepStateRequest::Header header;  // Without `bytes` and `crc32`, which the call fills in.
  absl::string_view state;
};

struct FetchedState {
  std::vector<v1::StateId> states;  // The sender's states on the server, the newest first.
  std::string state;                // The one that the request names.
};

// The CRC-32 of a state, that of zlib.
uint32_t StateChecksum(absl::string_view state);

// One server. Thread-safe. Calls fail with DEADLINE_EXCEEDED at their deadline, a SteadyTime(), and with UNAVAILABLE
// while the server cannot be reached.
class ServerCalls {
 public:
  virtual ~ServerCalls() = default;

  virtual const std::string& address() const = 0;  // The server's name in messages.
  virtual absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request, absl::Time deadline) = 0;
  virtual absl::Status Initialize(const InitialValues& values, absl::Time deadline) = 0;
  // Gives every message to `sink`, in order, in the calling thread. An error of the sink ends the call with that error.
  virtual absl::Status Pull(const std::string& job_id, absl::Time deadline,
                            const std::function<absl::Status(const v1::PullResponse&)>& sink) = 0;
  virtual absl::StatusOr<v1::PaceResponse> Pace(const v1::PaceRequest& request, absl::Time deadline) = 0;
  // Makes the server save the sender's shard. OK: everything that the server answered before the call is on its disk.
  virtual absl::Status Save(const v1::SaveRequest& request, absl::Time deadline) = 0;
  // Keeps a state of the sender's rank on the server's disk. One attempt.
  virtual absl::Status KeepState(const StateToKeep& state, absl::Time deadline) = 0;
  // Lists the sender's states, and reads the one that the request names. DATA_LOSS: it is damaged. One attempt.
  virtual absl::StatusOr<FetchedState> FetchState(const v1::FetchStateRequest& request, absl::Time deadline) = 0;
  // Asks whether the server is there, where it takes direct connections, and from which snapshot it restored the
  // sender's shard. One attempt, which costs the server next to nothing.
  virtual absl::StatusOr<v1::LocateResponse> Locate(const v1::Sender& sender, absl::Time deadline) = 0;
  // Opens a stream. Never blocks. If the server cannot be reached, Read fails.
  virtual std::shared_ptr<ExchangeStream> OpenExchange(const v1::Sender& sender) = 0;
};

// Returns the calls for a server's host:port. Never blocks, never returns null.
using ServerDialer = std::function<std::unique_ptr<ServerCalls>(const std::string& address)>;

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_CALLS_H_
