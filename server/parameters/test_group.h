#ifndef HOOKE_SERVER_PARAMETERS_TEST_GROUP_H_
#define HOOKE_SERVER_PARAMETERS_TEST_GROUP_H_

// The simplest client of the parameter servers' protocol, for tests. It is one rank that talks to one server and keeps
// a window of blocks unanswered. Attach, Initialize, Pull and Exchange have deadlines of 30 seconds.

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.grpc.pb.h"
#include "server/parameters/test_center.h"

namespace hooke {

class TestGroup {
 public:
  TestGroup(TestCenter center, v1::Sender sender, const std::string& address);

  absl::StatusOr<v1::AttachResponse> Attach();
  // Sends the shard's part of `values`, the whole vector, as initial values.
  absl::Status Initialize(absl::Span<const float> values);
  // Returns the shard's present values.
  absl::StatusOr<std::vector<float>> Pull();

  // Describes one exchange of this rank's `blocks`, in this order. Each answer is subtracted from x. After
  // `break_after` answers the stream is cut once, while the next blocks are sent and unanswered. These blocks are sent
  // again on a second stream.
  struct Call {
    uint64_t sequence = 0;
    std::vector<uint64_t> blocks;
    size_t break_after = SIZE_MAX;
  };
  absl::Status Exchange(const Call& call, absl::Span<float> x);

  // Returns the blocks that this rank exchanges with this server, ascending.
  std::vector<uint64_t> Blocks() const;
  Range ShardValues() const { return partition_.ShardValues({center_.shard_index, center_.shard_count}); }
  v1::ParameterServer::Stub& stub() { return *stub_; }

  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  // Opens a stream of Exchange and sends nothing.
  std::unique_ptr<Stream> OpenExchange(grpc::ClientContext* context);

 private:
  // Sends the blocks from `done` on, and counts the answers in `done`. Cuts the stream when `done` reaches `stop_at`.
  absl::Status RunStream(const Call& call, absl::Span<float> x, size_t* done, size_t stop_at);

  const TestCenter center_;
  const v1::Sender sender_;
  const Partition partition_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ParameterServer::Stub> stub_;
};

// Sets a deadline of 30 seconds. Without one a broken server would hang the test.
void SetDeadline(grpc::ClientContext* context);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_GROUP_H_
