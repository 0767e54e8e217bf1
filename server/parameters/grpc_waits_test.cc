// Streams of GrpcExchanges that wait: for other groups, for their peer, for the server's end. They have no thread of
// their own, and keep no other stream waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/grpc_exchanges.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_direct.h"
#include "server/parameters/test_grpc_exchanges.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GrpcWaitsTest : public DirectExchangesTest {
 protected:
  // Starts a job with rounds, to which all groups attach. By default a round needs all of them.
  void StartRounds(uint32_t groups, GrpcExchanges::Options options = {},
                   std::optional<double> grace_seconds = std::nullopt) {
    center_.groups = groups;
    center_.values = 8;
    v1::AttachRequest request = MakeStepRequest(center_, v1::AveragingSpec::AVERAGE, 1);
    request.mutable_job()->set_grace_seconds(grace_seconds.value_or(10));
    if (!grace_seconds.has_value()) request.mutable_job()->set_quorum(groups);
    Start(request);
    for (uint32_t group = 1; group < groups; ++group) {
      request.mutable_sender()->set_group(group);
      ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), request).ok());
    }
    server_ = std::make_unique<TestGrpcExchanges>(store_.get(), logger_, std::move(options));
    client_ = std::make_unique<TestGroup>(center_, MakeSender(center_), server_->address());
  }
  ~GrpcWaitsTest() override {
    store_->StopWaiting();
    server_.reset();
  }

  std::unique_ptr<TestStream> OpenGroup(uint32_t group) {
    return std::make_unique<TestStream>(*client_, MakeSender(center_, group));
  }
  static GrpcExchanges::Options OneThread() {
    GrpcExchanges::Options options;
    options.threads = 1;
    return options;
  }

  TestCenter center_;
  std::unique_ptr<TestGrpcExchanges> server_;
  std::unique_ptr<TestGroup> client_;
};

// Three hundred streams wait for a round, with no more threads than twenty do. When the last group comes, all have
// their answer.
TEST_F(GrpcWaitsTest, ThreeHundredStreamsWaitWithFewThreads) {
  constexpr uint32_t kGroups = 300;
  constexpr size_t kThreadsOfGrpc = 8;  // gRPC makes a few threads as it needs them.
  StartRounds(kGroups);
  size_t threads = 0;
  std::vector<std::unique_ptr<TestStream>> streams;
  const std::vector<float> values(8, 1);
  for (uint32_t group = 0; group < kGroups; ++group) {
    if (group == 20) threads = ThreadsOfThisProcess();
    if (group + 1 == kGroups) {
      EXPECT_LE(ThreadsOfThisProcess(), threads + kThreadsOfGrpc);
    }
    streams.push_back(OpenGroup(group));
    ASSERT_TRUE(streams.back()->Send(1, values));
  }
  for (const auto& stream : streams) ASSERT_THAT(stream->Receive(), Each(FloatNear(-1, 1e-4)));
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->updates(), 2u) << "one round for each of both blocks";
  EXPECT_LE(ThreadsOfThisProcess(), threads + kThreadsOfGrpc) << "all streams are open";
}

// Two groups whose streams share one thread have rounds with each other.
TEST_F(GrpcWaitsTest, OneThreadServesGroupsThatWaitForEachOther) {
  StartRounds(2, OneThread());
  std::vector<std::thread> clients;
  for (uint32_t group = 0; group < 2; ++group) {
    clients.emplace_back([this, group] {
      const std::unique_ptr<TestStream> stream = OpenGroup(group);
      for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
        ASSERT_TRUE(stream->Send(sequence, std::vector<float>(8, static_cast<float>(group))));
        ASSERT_THAT(stream->Receive(), Each(-0.5f * static_cast<float>(sequence)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// The grace window ends although no message comes: the round closes without the missing group.
TEST_F(GrpcWaitsTest, AGraceWindowEnds) {
  StartRounds(2, {}, /*grace_seconds=*/0.2);
  const std::unique_ptr<TestStream> stream = OpenGroup(0);
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(stream->Send(1, std::vector<float>(8, 1)));
  EXPECT_THAT(stream->Receive(), SizeIs(8));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(190));
}

// A peer goes away while its contribution waits. The contribution has its round, then the stream is gone, and another
// one has its room.
TEST_F(GrpcWaitsTest, AStreamWhosePeerIsGoneEndsWithItsRound) {
  GrpcExchanges::Options options;
  options.streams_max = 2;
  StartRounds(2, options);
  const std::unique_ptr<TestStream> gone = OpenGroup(0);
  ASSERT_TRUE(gone->Send(1, std::vector<float>(8, 1)));
  gone->Cancel();
  EXPECT_EQ(gone->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The opening alone may have come, or nothing at all. A client sends again what was not answered.
  const std::unique_ptr<TestStream> other = OpenGroup(1);
  ASSERT_TRUE(other->Send(1, std::vector<float>(8, 1)));
  std::vector<float> answer;
  while (answer.empty()) {
    const std::unique_ptr<TestStream> again = OpenGroup(0);
    again->Send(1, std::vector<float>(8, 1));
    answer = again->Receive();
  }
  EXPECT_THAT(answer, Each(FloatNear(-1, 1e-4)));
  EXPECT_THAT(other->Receive(), Each(FloatNear(-1, 1e-4)));
}

// If a server has all the streams that it takes, one more is refused. The error says how many it takes.
TEST_F(GrpcWaitsTest, StreamsAreBounded) {
  GrpcExchanges::Options options;
  options.streams_max = 1;
  StartRounds(1, options);
  const std::unique_ptr<TestStream> first = OpenGroup(0);
  ASSERT_TRUE(first->Send(1, std::vector<float>(8, 1)));
  ASSERT_THAT(first->Receive(), SizeIs(8));
  const std::unique_ptr<TestStream> second = OpenGroup(0);
  EXPECT_THAT(second->Receive(), IsEmpty());
  const grpc::Status status = second->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "this server has 1 exchanges over gRPC, all that it takes; try again");
  ASSERT_TRUE(first->Send(2, std::vector<float>(8, 1))) << "the refused stream has no seat";
  EXPECT_THAT(first->Receive(), SizeIs(8));
}

// The server's end takes no time although 60 streams wait for a round, have sent an opening only, or nothing.
TEST_F(GrpcWaitsTest, CloseWaitsForNobody) {
  StartRounds(60);
  std::vector<std::unique_ptr<TestStream>> streams;
  for (uint32_t group = 0; group < 59; ++group) {
    streams.push_back(OpenGroup(group));
    if (group < 40) {
      ASSERT_TRUE(streams.back()->Send(1, std::vector<float>(8, 1)));
    }
  }
  const absl::Time begin = absl::Now();
  store_->StopWaiting();
  EXPECT_TRUE(server_->Close(absl::Seconds(10)));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  for (const auto& stream : streams) {
    EXPECT_THAT(stream->Receive(), IsEmpty());
    const grpc::StatusCode code = stream->Finish().error_code();
    EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::UNAVAILABLE) << code;
  }
}

}  // namespace
}  // namespace hooke
