// The servers as groups see them: real gRPC on loopback, with several servers in this process.
#include "server/parameters/parameter_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/clock_offset.h"
#include "clocks/steady_time.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/storage.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_group.h"
#include "server/parameters/test_server.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const uint64_t kValues = LargeCenter().values;

// One group calls Attach, Initialize, Exchange and Pull. The answer to Attach says what the group must keep to.
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

// Runs the exchanges of a rank with zero gradients, with all servers.
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

// Three groups of two ranks exchange with two servers at once. The sum of center and groups stays the same, and no
// group waits for another.
TEST(ParameterServer, ConcurrentGroupsConserveOverTwoServers) {
  TestServer first(std::make_shared<InMemoryStorage>()), second(std::make_shared<InMemoryStorage>());
  const std::vector<const TestServer*> servers = {&first, &second};
  TestCenter center = LargeCenter();
  center.groups = 3;
  center.ranks = 2;
  center.shard_count = 2;
  for (center.shard_index = 0; center.shard_index < 2; ++center.shard_index)
    MakeCenter(*servers[center.shard_index], center);
  for (center.shard_index = 0; center.shard_index < 2; ++center.shard_index) {
    for (uint32_t group = 1; group < 3; ++group) {
      ASSERT_TRUE(MakeGroup(*servers[center.shard_index], center, group).Attach().ok());
    }
  }
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

// Makes a Locate call for a group and returns the server's answer.
v1::LocateResponse Locate(TestGroup& to, uint32_t group) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  v1::LocateRequest request;
  *request.mutable_sender() = SenderOf("job-1");
  request.mutable_sender()->set_group(group);
  v1::LocateResponse response;
  EXPECT_TRUE(to.stub().Locate(&context, request, &response).ok());
  return response;
}

// A server that restarts on the same folder goes on where it was. An ended job's center is still there.
TEST(ParameterServer, RestartsFromItsFolder) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/parameter-server-", getpid());
  const TestCenter center = LargeCenter();
  std::vector<float> x = Ramp(0, kValues, 8);
  {
    TestServer server(OpenFolderStorage(folder).value());
    MakeCenter(server, center);
    TestGroup group = MakeGroup(server, center, 1);
    EXPECT_TRUE(group.Attach().ok());
    EXPECT_TRUE(group.Exchange({16, group.Blocks()}, absl::MakeSpan(x)).ok());
    EXPECT_FALSE(Locate(group, 1).has_restored()) << "the shard was made here";
  }
  {
    const absl::Time now = absl::Now();
    TestServer server(OpenFolderStorage(folder).value());
    TestGroup group = MakeGroup(server, center, 1);
    EXPECT_EQ(Locate(group, 1).restored().sequence(), 16u);
    EXPECT_EQ(Locate(group, 0).restored().sequence(), 0u) << "of a group that has not exchanged";
    EXPECT_NE(Locate(group, 1).restored().loaded_unix_us(), 0);
    EXPECT_LE(absl::FromUnixMillis(Locate(group, 1).restored().snapshot_unix_ms()), now + absl::Seconds(1));
    EXPECT_GE(absl::FromUnixMillis(Locate(group, 1).restored().snapshot_unix_ms()), now - absl::Minutes(2));
    EXPECT_FALSE(Locate(group, 1000000).has_restored());
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

// After an OK to Save the center is on disk. Unknown and malformed ids are refused.
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
    *request.mutable_sender() = SenderOf(job_id);
    v1::SaveResponse response;
    return group.stub().Save(&context, request, &response).error_code();
  };
  EXPECT_EQ(save(center.job_id), grpc::StatusCode::OK);
  EXPECT_EQ(storage->List().value().size(), 2u);
  EXPECT_EQ(save("job-7"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(save("../x"), grpc::StatusCode::INVALID_ARGUMENT);
}

// Groups are told why they are refused: another model, a replaced incarnation, a job that is not here, and a center
// that is too large.
TEST(ParameterServer, Refusals) {
  ParameterServerOptions options = TestServerOptions(std::make_shared<InMemoryStorage>());
  options.max_center_bytes = 4 << 20;
  const TestServer server(options);
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
  EXPECT_EQ(aborted.message(), "start 1 of group 0 has been replaced by start 2; stop");

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

// A caller without the job's key cannot replace a group by claiming a later start. It cannot make the server save, and
// leaves no trace in the snapshot. The real group can still exchange, even after the server restarts.
TEST(ParameterServer, StrangersReplaceNobody) {
  const auto storage = std::make_shared<InMemoryStorage>();
  const TestCenter center = LargeCenter();
  TestCenter without = center;
  without.job_key = "";
  std::vector<float> x = Ramp(0, kValues, 8);
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    TestServer server(storage);
    if (sequence == 1) MakeCenter(server, center);
    TestGroup stranger = MakeGroup(server, without, 0, 0, 0xffffffff);
    const size_t snapshots = storage->List().value().size();
    const auto pace = [&stranger](const v1::Sender& sender) {
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::PaceRequest request;
      *request.mutable_sender() = sender;
      request.set_steps_per_second(1000);
      v1::PaceResponse response;
      return stranger.stub().Pace(&context, request, &response);
    };
    const auto save = [&stranger](const v1::Sender& sender) {
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::SaveRequest request;
      *request.mutable_sender() = sender;
      v1::SaveResponse response;
      return stranger.stub().Save(&context, request, &response).error_code();
    };
    const auto knows_origin = [&stranger](const v1::Sender& sender) {
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::LocateRequest request;
      *request.mutable_sender() = sender;
      v1::LocateResponse response;
      EXPECT_TRUE(stranger.stub().Locate(&context, request, &response).ok());
      return response.has_restored();
    };
    const grpc::Status refused = pace(MakeSender(without, 0, 0, 0xffffffff));
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(refused.error_message(), HasSubstr("this is not the key of job job-1"));
    EXPECT_EQ(pace(MakeSender(center, 0, 0, 0xffffffff)).error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(stranger.Exchange({1, {0}}, absl::MakeSpan(x)).code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(stranger.Initialize(x).code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(stranger.Attach().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(save(MakeSender(without)), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(storage->List().value().size(), snapshots);
    EXPECT_FALSE(knows_origin(MakeSender(without)));
    EXPECT_EQ(knows_origin(MakeSender(center)), sequence == 2);

    EXPECT_TRUE(pace(MakeSender(center)).ok());
    TestGroup group = MakeGroup(server, center);
    const absl::Status status = group.Exchange({sequence, group.Blocks()}, absl::MakeSpan(x));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(save(MakeSender(center)), grpc::StatusCode::OK);
  }
}

absl::StatusOr<v1::ReadExchangesResponse> ReadExchanges(TestGroup& group, const std::string& job_id) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ReadExchangesRequest request;
  request.set_job_id(job_id);
  v1::ReadExchangesResponse response;
  const grpc::Status status = group.stub().ReadExchanges(&context, request, &response);
  if (status.ok()) return response;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// A server tells the exchanges of all groups, by this machine's clock, and how that relates to the coordinator's. It
// tells them also after the job has ended, and no more once the job is forgotten.
TEST(ParameterServer, TellsItsExchanges) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup first = MakeGroup(server, center, 0);
  TestGroup second = MakeGroup(server, center, 1);
  ASSERT_TRUE(second.Attach().ok());
  const absl::StatusOr<v1::ReadExchangesResponse> none = ReadExchanges(first, center.job_id);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->exchanges().empty());
  EXPECT_FALSE(none->has_clock());

  const int64_t before = absl::ToUnixNanos(SteadyTime());
  std::vector<float> x = Ramp(0, kValues);
  ASSERT_TRUE(first.Exchange({16, first.Blocks()}, absl::MakeSpan(x)).ok());
  ASSERT_TRUE(second.Exchange({16, second.Blocks()}, absl::MakeSpan(x)).ok());
  ASSERT_TRUE(first.Exchange({32, first.Blocks()}, absl::MakeSpan(x)).ok());
  const int64_t after = absl::ToUnixNanos(SteadyTime());
  server.parameters().MeasureClock({1000, 5000, 3000});
  const absl::StatusOr<v1::ReadExchangesResponse> told = ReadExchanges(first, center.job_id);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->machine(), MachineClockName());
  EXPECT_EQ(told->clock().offset_ns(), 3000);
  EXPECT_GE(told->clock().error_ns(), 1000);
  std::vector<std::pair<uint32_t, uint64_t>> who;
  int64_t end = before;
  for (const v1::ServedExchange& exchange : told->exchanges()) {
    who.emplace_back(exchange.group(), exchange.sequence());
    EXPECT_EQ(exchange.rank(), 0u);
    EXPECT_EQ(exchange.incarnation(), 1u);
    EXPECT_EQ(exchange.messages(), 6u);
    EXPECT_EQ(exchange.received_bytes(), 4 * kValues);
    EXPECT_EQ(exchange.sent_bytes(), 4 * kValues);
    EXPECT_GT(exchange.work_ns(), 0u);
    EXPECT_LE(exchange.work_ns() + exchange.wait_ns(), exchange.duration_ns());
    EXPECT_GE(static_cast<int64_t>(exchange.begin_ns()), end);
    end = static_cast<int64_t>(exchange.begin_ns() + exchange.duration_ns());
  }
  EXPECT_LE(end, after);
  EXPECT_THAT(who, ElementsAre(std::make_pair(0, 16), std::make_pair(1, 16), std::make_pair(0, 32)));

  ASSERT_TRUE(server.parameters().Seal(center.job_id).ok());
  EXPECT_EQ(ReadExchanges(first, center.job_id)->exchanges_size(), 3);
  ASSERT_TRUE(server.parameters().Forget(center.job_id, center.job_key).ok());
  EXPECT_EQ(ReadExchanges(first, center.job_id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadExchanges(first, "../etc").status().code(), absl::StatusCode::kInvalidArgument);
}

// Options that cannot work are refused.
TEST(ParameterServer, RefusesOptions) {
  ParameterServerOptions options;
  EXPECT_EQ(ParameterServer::Create(options).status().message(),
            "a parameter server needs a storage, a logger and a clock");
  options = TestServerOptions(std::make_shared<InMemoryStorage>());
  options.snapshot_interval = absl::ZeroDuration();
  EXPECT_EQ(ParameterServer::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
