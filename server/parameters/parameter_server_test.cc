// The servers as groups see them: real gRPC on loopback, several servers in this process.
#include "server/parameters/parameter_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/storage.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_frames.h"
#include "server/parameters/test_group.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kValues = 5 * kBlockValues + 100;  // Six blocks, the last one short.

// A ParameterServer behind a grpc::Server on a free port.
class TestServer {
 public:
  explicit TestServer(std::shared_ptr<Storage> storage, uint64_t max_center_bytes = uint64_t{1} << 30) {
    ParameterServerOptions options;
    options.storage = std::move(storage);
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.max_center_bytes = max_center_bytes;
    options.snapshot_interval = absl::Hours(1);
    parameters_ = ParameterServer::Create(std::move(options)).value();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(parameters_->service());
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~TestServer() { Stop().IgnoreError(); }

  absl::Status Stop() {
    absl::Status status = parameters_->Stop();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    return status;
  }

  const std::string& address() const { return address_; }
  ParameterServer& parameters() { return *parameters_; }

 private:
  std::unique_ptr<ParameterServer> parameters_;
  std::unique_ptr<grpc::Server> server_;  // Goes first: it uses the service.
  std::string address_;
};

TestCenter LargeCenter() {
  TestCenter center;
  center.values = kValues;
  return center;
}

// Rank `rank` of `group`, talking to one server that holds all.
TestGroup MakeGroup(const TestServer& server, const TestCenter& center, uint32_t group = 0, uint32_t rank = 0,
                    uint32_t incarnation = 1) {
  return TestGroup(center, MakeSender(center, group, rank, incarnation), server.address());
}

void MakeCenter(const TestServer& server, const TestCenter& center) {
  TestGroup group = MakeGroup(server, center);
  ASSERT_EQ(group.Attach().value().state(), v1::AttachResponse::INITIALIZE);
  ASSERT_TRUE(group.Initialize(Ramp(0, center.values)).ok());
  ASSERT_EQ(group.Attach().value().state(), v1::AttachResponse::READY);
}

// Attach, Initialize, Exchange, Pull as one group does them; the answer of Attach says what the group must keep to.
TEST(ParameterServer, OneGroup) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  const v1::AttachResponse attached = group.Attach().value();
  EXPECT_EQ(attached.block_values(), kBlockValues);
  EXPECT_EQ(attached.window_blocks(), 16u);
  EXPECT_EQ(attached.last_sequence(), 0u);
  EXPECT_EQ(attached.initialize_seconds(), 20);
  std::vector<float> x = Ramp(0, kValues, 8);
  ASSERT_TRUE(group.Exchange({16, group.Blocks()}, absl::MakeSpan(x)).ok());
  EXPECT_EQ(x, Ramp(0, kValues, 6));
  EXPECT_EQ(group.Pull().value(), Ramp(0, kValues, 2));
  EXPECT_EQ(group.Attach().value().last_sequence(), 16u);
  EXPECT_THAT(server.parameters().Stats().jobs, ElementsAre("job-1"));
  EXPECT_GT(server.parameters().Stats().center_bytes, 4 * kValues);
}

// A rank of a group with zero gradients, over all servers.
void ExchangeOften(const std::vector<const TestServer*>& servers, TestCenter center, const v1::Sender& sender,
                   std::vector<float>& x) {
  std::deque<TestGroup> groups;
  for (center.shard_index = 0; center.shard_index < servers.size(); ++center.shard_index) {
    groups.emplace_back(center, sender, servers[center.shard_index]->address());
  }
  for (uint64_t sequence = 1; sequence <= 10; ++sequence) {
    for (TestGroup& group : groups) {
      const absl::Status status = group.Exchange({sequence, group.Blocks()}, absl::MakeSpan(x));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
}

// Three groups of two ranks exchange with two servers at once: center + sum of groups stays what it was, and nobody
// waits for anybody.
TEST(ParameterServer, ConcurrentGroupsConserveOverTwoServers) {
  TestServer first(std::make_shared<InMemoryStorage>()), second(std::make_shared<InMemoryStorage>());
  const std::vector<const TestServer*> servers = {&first, &second};
  TestCenter center = LargeCenter();
  center.groups = 3;
  center.ranks = 2;
  center.shard_count = 2;
  for (center.shard_index = 0; center.shard_index < 2; ++center.shard_index)
    MakeCenter(*servers[center.shard_index], center);
  std::vector<std::vector<float>> x;
  for (uint32_t group = 0; group < 3; ++group) x.push_back(Ramp(0, kValues, 10.0f * static_cast<float>(group)));
  std::vector<std::thread> threads;
  for (uint32_t group = 0; group < 3; ++group) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back(
          [&, group, rank]() { ExchangeOften(servers, center, MakeSender(center, group, rank), x[group]); });
    }
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<float> c;
  for (center.shard_index = 0; center.shard_index < 2; ++center.shard_index) {
    const std::vector<float> shard = MakeGroup(*servers[center.shard_index], center).Pull().value();
    c.insert(c.end(), shard.begin(), shard.end());
  }
  ASSERT_EQ(c.size(), kValues);
  for (uint64_t i = 0; i < kValues; ++i) {
    const double before = 4.0 * static_cast<double>(i) / 8 + 30;
    const double after = double{c[i]} + x[0][i] + x[1][i] + x[2][i];
    ASSERT_NEAR(after, before, 1e-6 * before + 1e-4) << "value " << i;
  }
}

// Blocks in any order, a stream that breaks after any number of answers, and the unanswered blocks sent again: group
// and center end bitwise where an undisturbed exchange puts them.
TEST(ParameterServer, BrokenStreamsAreExact) {
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

// A server that is stopped and started again on the same folder goes on where it was, and an ended job's center is
// still there.
TEST(ParameterServer, RestartsFromItsFolder) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/parameter-server-", getpid());
  const TestCenter center = LargeCenter();
  std::vector<float> x = Ramp(0, kValues, 8);
  {
    TestServer server(OpenFolderStorage(folder).value());
    MakeCenter(server, center);
    TestGroup group = MakeGroup(server, center, 1);
    EXPECT_TRUE(group.Exchange({16, group.Blocks()}, absl::MakeSpan(x)).ok());
    EXPECT_TRUE(server.Stop().ok());
  }
  {
    TestServer server(OpenFolderStorage(folder).value());
    TestGroup group = MakeGroup(server, center, 1);
    EXPECT_EQ(group.Attach().value().last_sequence(), 16u);
    EXPECT_EQ(group.Pull().value(), Ramp(0, kValues, 2));
    EXPECT_TRUE(group.Exchange({32, group.Blocks()}, absl::MakeSpan(x)).ok());
    EXPECT_TRUE(server.parameters().Seal("job-1").ok());
    EXPECT_THAT(server.parameters().Stats().jobs, IsEmpty());
  }
  {
    TestServer server(OpenFolderStorage(folder).value());
    TestGroup group = MakeGroup(server, center, 1);
    EXPECT_EQ(group.Pull().value(), Ramp(0, kValues, 3));
    EXPECT_EQ(group.Attach().status().code(), absl::StatusCode::kFailedPrecondition);
  }
  std::filesystem::remove_all(folder);
}

// Save over the wire: on disk after OK; unknown and malformed ids are refused.
TEST(ParameterServer, Saves) {
  const auto storage = std::make_shared<InMemoryStorage>();
  TestServer server(storage);
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  std::vector<float> x = Ramp(0, kValues, 8);
  ASSERT_TRUE(group.Exchange({16, group.Blocks()}, absl::MakeSpan(x)).ok());
  ASSERT_EQ(storage->List().value().size(), 1u);
  const auto save = [&group](const std::string& job_id) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::SaveRequest request;
    request.set_job_id(job_id);
    v1::SaveResponse response;
    return group.stub().Save(&context, request, &response).error_code();
  };
  EXPECT_EQ(save(center.job_id), grpc::StatusCode::OK);
  EXPECT_EQ(storage->List().value().size(), 2u);
  EXPECT_EQ(save("job-7"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(save("../x"), grpc::StatusCode::INVALID_ARGUMENT);
}

// What a group is told when it is not the one, or its model is not the one, that the center belongs to.
TEST(ParameterServer, Refusals) {
  TestServer server(std::make_shared<InMemoryStorage>(), 4 << 20);
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);

  TestCenter other = center;
  other.values = kValues + 1;
  const absl::Status layout = MakeGroup(server, other, 1).Attach().status();
  EXPECT_EQ(layout.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(layout.message(),
            "layout differs from the center's at parameter 0: the center has w float32 [82020], the group has w "
            "float32 [82021]; all groups "
            "of a job train the same model");

  EXPECT_TRUE(MakeGroup(server, center, 0, 0, 2).Attach().ok());
  std::vector<float> x = Ramp(0, kValues);
  TestGroup old = MakeGroup(server, center);
  const absl::Status aborted = old.Exchange({1, old.Blocks()}, absl::MakeSpan(x));
  EXPECT_EQ(aborted.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(aborted.message(), "incarnation 1 of group 0 has been replaced by 2; stop");

  other.job_id = "job-2";
  TestGroup unknown = MakeGroup(server, other);
  EXPECT_EQ(unknown.Pull().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(unknown.Exchange({1, {0}}, absl::MakeSpan(x)).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(unknown.Pull().status().message(),
            "job job-2 has no center on this server: it failed or was cancelled before its first values, or it ran on "
            "other servers");

  other.values = 1 << 20;
  const absl::Status large = MakeGroup(server, other).Attach().status();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.message()),
              HasSubstr("of this server's 4194304 are free; raise --max-center-bytes or add servers"));
}

// A message larger than gRPC takes is refused with RESOURCE_EXHAUSTED and the limit, on a unary call and on a stream.
TEST(ParameterServer, MessageLargerThanAllowed) {
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
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = group.OpenExchange(&context);
  EXPECT_TRUE(stream->Write(OpeningMessage(MakeSender(center))));
  stream->Write(ValuesMessage({1, 0}, std::vector<float>(5 << 18)));
  stream->WritesDone();
  grpc::ByteBuffer response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("4194304"));
  EXPECT_EQ(group.Pull().value(), Ramp(0, kValues));
}

// What no client of ours sends (no message at all, half a header, values of a type that is not known, a length that is
// not announced, an opening of another version) ends its own stream with INVALID_ARGUMENT, and nothing else.
TEST(ParameterServer, StrangersBytes) {
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
      {changed(opening, 1, 2)},
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
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stream = group.OpenExchange(&context);
    for (const std::string& message : messages) stream->Write(Message(message));
    stream->WritesDone();
    grpc::ByteBuffer response;
    EXPECT_FALSE(stream->Read(&response));
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  }
  EXPECT_EQ(group.Pull().value(), Ramp(0, kValues));
}

// An open stream of Exchange.
struct OpenStream {
  explicit OpenStream(TestGroup& group) {
    SetDeadline(&context);
    stream = group.OpenExchange(&context);
  }
  // False: the stream has ended.
  bool Exchange(uint64_t sequence, const std::vector<float>& block) {
    grpc::ByteBuffer response;
    return stream->Write(ValuesMessage({sequence, 0}, block)) && stream->Read(&response);
  }

  grpc::ClientContext context;
  std::unique_ptr<TestGroup::Stream> stream;
};

// A rank has one stream: its next one ends the one before, on which nothing comes, and no other rank's.
TEST(ParameterServer, ARanksNextStreamEndsTheOneBefore) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  TestGroup another = MakeGroup(server, center, 1);
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

// A stream that was ended waits for its round nonetheless. A client that begins another block on every new one has a
// few that wait, and no more.
TEST(ParameterServer, FewStreamsOfARankWait) {
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
    // Alone it waits for nobody, and what is sent again is answered at once.
    if (next.Exchange(1, zeros)) {
      if (block == 1) {
        request.mutable_sender()->set_group(1);
        attach();
      }
      // Should the next stream end this one before this is read, it does not wait, and is none of the four.
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

// A server that stops does not wait for a stream on which nothing comes; calls after that are told that it stops.
TEST(ParameterServer, StopEndsIdleStreams) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup group = MakeGroup(server, center);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = group.OpenExchange(&context);
  grpc::ByteBuffer response;
  ASSERT_TRUE(stream->Write(OpeningMessage(MakeSender(center))));
  ASSERT_TRUE(stream->Write(ValuesMessage({1, 0}, Ramp(0, kBlockValues))));
  ASSERT_TRUE(stream->Read(&response)) << "the stream is open";

  EXPECT_TRUE(server.parameters().Stop().ok());
  EXPECT_FALSE(stream->Read(&response));
  const grpc::StatusCode code = stream->Finish().error_code();
  EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::UNAVAILABLE) << code;
  EXPECT_EQ(group.Attach().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(group.Attach().status().message(), "this parameter server is stopping; try again");
}

// Options that cannot work are refused.
TEST(ParameterServer, RefusesOptions) {
  ParameterServerOptions options;
  EXPECT_EQ(ParameterServer::Create(options).status().message(),
            "a parameter server needs a storage, a logger and a clock");
  options.storage = std::make_shared<InMemoryStorage>();
  options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  options.snapshot_interval = absl::ZeroDuration();
  EXPECT_EQ(ParameterServer::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
