// Connections of jobs whose shards are not in memory: because they have not been loaded yet, or because the job has
// ended. Both kinds of exchanges are tested, those over gRPC and those over sockets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_direct.h"
#include "server/parameters/test_grpc_exchanges.h"
#include "wire/frame_socket.h"

namespace hooke {
namespace {

using ::testing::SizeIs;

class UnloadedShardsTest : public DirectExchangesTest {
 protected:
  UnloadedShardsTest() {
    quick_.job_id = "job-2";
    MakeCenter(MakeAttachRequest(quick_));
  }
  ~UnloadedShardsTest() override {
    storage_->ReleaseOpens();
    server_.reset();
  }

  // Starts the server again, with a disk that does not return the snapshot of job-1. One thread serves all connections,
  // and one serves all streams.
  void RestartWithSlowDisk() {
    OpenStore();
    storage_->HoldOpens("job-1.");
    DirectExchanges::Options of_sockets;
    of_sockets.threads = 1;
    Listen(of_sockets);
    GrpcExchanges::Options of_streams;
    of_streams.threads = 1;
    server_ = std::make_unique<TestGrpcExchanges>(store_.get(), logger_, of_streams);
    client_ = std::make_unique<TestGroup>(slow_, MakeSender(slow_), server_->address());
  }
  std::unique_ptr<FrameSocket> ConnectJob(const TestCenter& center) {
    std::unique_ptr<FrameSocket> socket = Connect();
    EXPECT_TRUE(socket->SendOpening(MakeSender(center)).ok());
    return socket;
  }
  // Waits until nobody has the shard any more, 30 s at most.
  static bool IsFreed(const std::weak_ptr<Shard>& shard) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (!shard.expired() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    return shard.expired();
  }

  const TestCenter slow_;
  TestCenter quick_;
  const std::vector<float> values_ = {1, 2, 3, 4};
  std::unique_ptr<TestGrpcExchanges> server_;
  std::unique_ptr<TestGroup> client_;
};

// A shard that is still being read from disk keeps only its own job's connections waiting.
TEST_F(UnloadedShardsTest, ALoadDelaysNoOtherJobsConnections) {
  RestartWithSlowDisk();
  const std::unique_ptr<FrameSocket> slow = ConnectJob(slow_);
  ASSERT_TRUE(SendValues(*slow, {1, 0, 4}, values_).ok());
  const std::unique_ptr<FrameSocket> silent = Connect();
  ASSERT_TRUE(silent->SendOpening(MakeSender(slow_, 1)).ok());
  storage_->AwaitHeldOpen();
  const std::unique_ptr<FrameSocket> quick = ConnectJob(quick_);
  EXPECT_TRUE(Exchange(*quick, {1, 0, 4}, values_).ok());
  storage_->ReleaseOpens();
  EXPECT_TRUE(ReceiveAnswer(*slow, {1, 0, 4}).ok());
}

TEST_F(UnloadedShardsTest, ALoadDelaysNoOtherJobsStreams) {
  RestartWithSlowDisk();
  TestStream slow(*client_, MakeSender(slow_));
  ASSERT_TRUE(slow.Send(1, values_));
  const TestStream silent(*client_, MakeSender(slow_, 1));
  storage_->AwaitHeldOpen();
  TestStream quick(*client_, MakeSender(quick_));
  ASSERT_TRUE(quick.Send(1, values_));
  EXPECT_THAT(quick.Receive(), SizeIs(4));
  storage_->ReleaseOpens();
  EXPECT_THAT(slow.Receive(), SizeIs(4));
}

// A peer whose shard cannot be loaded is refused with the reason.
TEST_F(UnloadedShardsTest, APeerLearnsThatItsShardIsLost) {
  RestartWithSlowDisk();
  const std::unique_ptr<FrameSocket> socket = ConnectJob(slow_);
  TestStream stream(*client_, MakeSender(slow_));
  storage_->AwaitHeldOpen();
  storage_->FlipBit("job-1.000000000001.snapshot", 8 * (storage_->Get("job-1.000000000001.snapshot").size() - 10));
  storage_->ReleaseOpens();
  EXPECT_EQ(ReceiveAnswer(*socket, {1, 0, 4}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::DATA_LOSS);
}

// Silent peers of a job that has ended do not keep its shard in memory. Those of other jobs stay connected.
TEST_F(UnloadedShardsTest, SilentPeersDoNotKeepAnEndedJobsShard) {
  server_ = std::make_unique<TestGrpcExchanges>(store_.get(), logger_);
  client_ = std::make_unique<TestGroup>(slow_, MakeSender(slow_), server_->address());
  const std::unique_ptr<FrameSocket> silent = ConnectJob(slow_);
  ASSERT_TRUE(Exchange(*silent, {1, 0, 4}, values_).ok());
  TestStream silent_stream(*client_, MakeSender(slow_, 1));
  ASSERT_TRUE(silent_stream.Send(1, values_));
  ASSERT_THAT(silent_stream.Receive(), SizeIs(4));
  const std::unique_ptr<FrameSocket> other = ConnectJob(quick_);
  ASSERT_TRUE(Exchange(*other, {1, 0, 4}, values_).ok());

  const std::weak_ptr<Shard> shard = store_->Find(SenderOf("job-1")).value();
  ASSERT_TRUE(store_->Seal("job-1").ok());
  EXPECT_TRUE(IsFreed(shard));
  EXPECT_FALSE(Exchange(*silent, {2, 0, 4}, values_).ok());
  EXPECT_EQ(silent_stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(ReceiveAnswer(*ConnectJob(slow_), {2, 0, 4}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Exchange(*other, {2, 0, 4}, values_).ok());

  const std::weak_ptr<Shard> forgotten = store_->Find(MakeSender(quick_)).value();
  ASSERT_TRUE(store_->Forget("job-2", quick_.job_key).ok());
  EXPECT_TRUE(IsFreed(forgotten));
}

}  // namespace
}  // namespace hooke
