// Streams of exchanges over gRPC, as a server sees them: broken streams, a rank's next stream, strangers' bytes, and
// the server's own end.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_frames.h"
#include "server/parameters/test_group.h"
#include "server/parameters/test_server.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

const uint64_t kValues = LargeCenter().values;

// An open stream of Exchange.
struct OpenStream {
  explicit OpenStream(TestGroup& group) {
    SetDeadline(&context);
    stream = group.OpenExchange(&context);
  }
  // Makes one exchange of a block. False: the stream has ended.
  bool Exchange(uint64_t sequence, const std::vector<float>& block) {
    grpc::ByteBuffer response;
    return stream->Write(ValuesMessage({sequence, 0}, block)) && stream->Read(&response);
  }

  grpc::ClientContext context;
  std::unique_ptr<TestGroup::Stream> stream;
};

// Blocks come in any order, a stream breaks after any number of answers, and unanswered blocks are sent again. Group
// and center end bitwise where an undisturbed exchange puts them.
TEST(ParameterServerStreams, BrokenStreamsAreExact) {
  TestServer server(std::make_shared<InMemoryStorage>());
  TestCenter center = LargeCenter();
  center.job_id = "calm";
  MakeCenter(server, center);
  TestGroup calm = MakeGroup(server, center);
  center.job_id = "broken";
  MakeCenter(server, center);
  TestGroup broken = MakeGroup(server, center);

  std::vector<float> x = Ramp(0, kValues, 3), y = x;
  std::vector<uint64_t> order = calm.Blocks();
  for (uint64_t sequence = 1; sequence <= 2 * order.size(); ++sequence) {
    ASSERT_TRUE(calm.Exchange({sequence, calm.Blocks()}, absl::MakeSpan(x)).ok());
    std::rotate(order.begin(), order.begin() + 1, order.end());
    if (sequence % 3 == 0) std::reverse(order.begin(), order.end());
    const absl::Status status = broken.Exchange({sequence, order, sequence % order.size()}, absl::MakeSpan(y));
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(x, y);
  EXPECT_EQ(calm.Pull().value(), broken.Pull().value());
}

// A message larger than gRPC takes is refused with RESOURCE_EXHAUSTED and the limit, on a unary call and on a stream.
TEST(ParameterServerStreams, MessageLargerThanAllowed) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::AttachRequest request = MakeAttachRequest(center);
    request.mutable_layout()->mutable_parameters(0)->set_name(std::string(5 << 20, 'x'));
    v1::AttachResponse response;
    const grpc::Status status = group.stub().Attach(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("4194304"));
  }
  const OpenStream open(group);
  EXPECT_TRUE(open.stream->Write(OpeningMessage(MakeSender(center))));
  open.stream->Write(ValuesMessage({1, 0}, std::vector<float>(5 << 18)));
  open.stream->WritesDone();
  grpc::ByteBuffer response;
  EXPECT_FALSE(open.stream->Read(&response));
  const grpc::Status status = open.stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("4194304"));
  EXPECT_EQ(group.Pull().value(), Ramp(0, kValues));
}

// Bytes that no client of ours sends end their own stream with INVALID_ARGUMENT, and nothing else. There is no message
// at all, half a header, values of an unknown type, a length that was not announced, or an opening of another version.
TEST(ParameterServerStreams, StrangersBytes) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  const std::string opening = EncodeOpening(MakeSender(center));
  std::string values(kValuesHeaderBytes + 4, '\0');
  EncodeValuesHeader({1, 0, 1}, absl::MakeSpan(&values[0], values.size()));
  const auto changed = [](std::string message, size_t at, char to) {
    message[at] = to;
    return message;
  };
  const std::vector<std::vector<std::string>> cases = {
      {""},
      {std::string(1 << 20, '\xff')},
      {opening.substr(0, 15)},
      {opening + "x"},
      {changed(opening, 1, 1)},
      {values},
      {opening, opening},
      {opening, ""},
      {opening, values.substr(0, 23)},
      {opening, values.substr(0, 24)},
      {opening, values + "x"},
      {opening, changed(values, 1, 2)},
      {opening, changed(values, 3, 1)},
      {opening, changed(values, 7, '\xff')},
      {opening, changed(values, 23, '\xff')},
  };
  for (const std::vector<std::string>& messages : cases) {
    const OpenStream open(group);
    for (const std::string& message : messages) open.stream->Write(Message(message));
    open.stream->WritesDone();
    grpc::ByteBuffer response;
    EXPECT_FALSE(open.stream->Read(&response));
    const grpc::Status status = open.stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  }
  EXPECT_EQ(group.Pull().value(), Ramp(0, kValues));
}

// A rank has one stream. A new stream ends the rank's previous one, even if nothing arrives on that one. Other ranks'
// streams stay.
TEST(ParameterServerStreams, ARanksNextStreamEndsTheOneBefore) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  TestGroup another = MakeGroup(server, center, 1);
  ASSERT_TRUE(another.Attach().ok());
  OpenStream other(another);
  ASSERT_TRUE(other.stream->Write(OpeningMessage(MakeSender(center, 1))));
  ASSERT_TRUE(other.Exchange(1, Ramp(0, kBlockValues)));
  std::deque<OpenStream> streams;
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    streams.emplace_back(group);
    ASSERT_TRUE(streams.back().stream->Write(OpeningMessage(MakeSender(center))));
    ASSERT_TRUE(streams.back().Exchange(sequence, Ramp(0, kBlockValues)));
    if (sequence == 1) continue;
    grpc::ByteBuffer response;
    EXPECT_FALSE(streams.front().stream->Read(&response));
    EXPECT_EQ(streams.front().stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
    streams.pop_front();
  }
  for (OpenStream* open : {&streams.front(), &other}) {
    EXPECT_TRUE(open->Exchange(21, Ramp(0, kBlockValues)));
    open->stream->WritesDone();
    EXPECT_TRUE(open->stream->Finish().ok());
  }
}

// A stream that was ended still waits for its round. A client that begins another block on every new stream has a few
// that wait, and no more.
TEST(ParameterServerStreams, FewStreamsOfARankWait) {
  TestServer server(std::make_shared<InMemoryStorage>());
  TestCenter center;
  center.values = 12 * kBlockValues;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::AVERAGE, 1);
  request.mutable_job()->set_grace_seconds(10);
  TestGroup group = MakeGroup(server, center);
  const auto attach = [&] {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::AttachResponse response;
    EXPECT_TRUE(group.stub().Attach(&context, request, &response).ok());
  };
  attach();
  ASSERT_TRUE(group.Initialize(std::vector<float>(center.values)).ok());
  attach();
  const std::vector<float> zeros(kBlockValues);
  std::deque<OpenStream> streams;
  std::string refusal;
  for (uint64_t block = 1; block < 12 && refusal.empty(); ++block) {
    OpenStream& next = streams.emplace_back(group);
    next.stream->Write(OpeningMessage(MakeSender(center)));
    // A single group waits for no other group, and a repeat is answered at once.
    if (next.Exchange(1, zeros)) {
      if (block == 1) {
        request.mutable_sender()->set_group(1);
        attach();
      }
      // If the next stream ends this one before the server reads this message, this stream does not wait, and is none
      // of the four.
      ASSERT_TRUE(next.stream->Write(ValuesMessage({2, block * kBlockValues}, zeros)));
      continue;
    }
    const grpc::Status status = next.stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    refusal = status.error_message();
    streams.pop_back();
  }
  EXPECT_EQ(refusal, "4 streams of rank 0 of group 0 still wait for a round; try again");
  EXPECT_GE(streams.size(), 4u);
  for (OpenStream& open : streams) {
    open.context.TryCancel();
    EXPECT_FALSE(open.stream->Finish().ok());
  }
}

// A server that stops does not wait for a stream on which nothing comes. Later calls are told that it stops.
TEST(ParameterServerStreams, StopEndsIdleStreams) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  OpenStream open(group);
  ASSERT_TRUE(open.stream->Write(OpeningMessage(MakeSender(center))));
  ASSERT_TRUE(open.Exchange(1, Ramp(0, kBlockValues))) << "the stream is open";

  EXPECT_TRUE(server.parameters().Stop().ok());
  grpc::ByteBuffer response;
  EXPECT_FALSE(open.stream->Read(&response));
  const grpc::StatusCode code = open.stream->Finish().error_code();
  EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::UNAVAILABLE) << code;
  EXPECT_EQ(group.Attach().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(group.Attach().status().message(), "this parameter server is stopping; try again");
}

}  // namespace
}  // namespace hooke
