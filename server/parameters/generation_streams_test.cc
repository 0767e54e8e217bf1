// Groups of two generations at one server, over gRPC and over direct connections: streams of the earlier generation end
// when the later one begins, and their groups learn why.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_direct.h"
#include "server/parameters/test_frames.h"
#include "server/parameters/test_group.h"
#include "server/parameters/test_server.h"
#include "wire/frame.h"
#include "wire/frame_socket.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

void ExpectOver(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a generation that is over"));
}

TestCenter Later(TestCenter center, uint32_t groups) {
  center.groups = groups;
  center.first_incarnation = 5;
  center.first_step = 40;
  return center;
}

// An idle stream ends, and every later call of its group is refused. The new groups exchange with the center as it was.
TEST(GenerationStreams, OverGrpc) {
  TestServer server(std::make_shared<InMemoryStorage>());
  const TestCenter center = LargeCenter();
  MakeCenter(server, center);
  TestGroup old = MakeGroup(server, center, 1);
  ASSERT_TRUE(old.Attach().ok());
  grpc::ClientContext context;
  SetDeadline(&context);
  const std::unique_ptr<TestGroup::Stream> idle = old.OpenExchange(&context);
  grpc::ByteBuffer answer;
  ASSERT_TRUE(idle->Write(OpeningMessage(MakeSender(center, 1))));
  ASSERT_TRUE(idle->Write(ValuesMessage({1, 0}, Ramp(0, kBlockValues))));
  ASSERT_TRUE(idle->Read(&answer));

  const TestCenter later = Later(center, 1);
  TestGroup group = MakeGroup(server, later, 0, 0, 5);
  const v1::AttachResponse attached = group.Attach().value();
  EXPECT_EQ(attached.state(), v1::AttachResponse::READY);
  EXPECT_EQ(attached.last_sequence(), 40u);
  EXPECT_FALSE(idle->Read(&answer)) << "the stream of an earlier generation stays open";
  EXPECT_FALSE(idle->Finish().ok());
  std::vector<float> x = Ramp(0, center.values, 4);
  ExpectOver(old.Exchange({2, old.Blocks()}, absl::MakeSpan(x)));
  ExpectOver(old.Attach().status());
  ASSERT_TRUE(group.Exchange({41, group.Blocks()}, absl::MakeSpan(x)).ok());
  EXPECT_EQ(group.Pull().value(), Ramp(0, center.values, 1));

  grpc::ClientContext pace_context, save_context, fetch_context;
  for (grpc::ClientContext* each : {&pace_context, &save_context, &fetch_context}) SetDeadline(each);
  v1::PaceRequest pace;
  v1::PaceResponse paced;
  *pace.mutable_sender() = MakeSender(center, 1);
  ExpectOver(FromGrpc(old.stub().Pace(&pace_context, pace, &paced)));
  v1::SaveRequest save;
  v1::SaveResponse saved;
  *save.mutable_sender() = MakeSender(center, 1);
  ExpectOver(FromGrpc(old.stub().Save(&save_context, save, &saved)));
  v1::FetchStateRequest fetch;
  v1::FetchStateResponse fetched;
  *fetch.mutable_sender() = MakeSender(center, 1);
  const auto states = old.stub().FetchState(&fetch_context, fetch);
  EXPECT_FALSE(states->Read(&fetched));
  ExpectOver(FromGrpc(states->Finish()));
}

class DirectGenerationsTest : public DirectExchangesTest {};

// A group that waits for others in a round is told that the generation is over, or finds its connection closed and
// learns it when it connects again. A new group has the rank's seat at once.
TEST_F(DirectGenerationsTest, OverDirectConnections) {
  TestCenter center;
  center.values = 8;
  const auto request = [](const TestCenter& of, uint32_t group, uint32_t incarnation) {
    v1::AttachRequest made = MakeStepRequest(of, v1::AveragingSpec::AVERAGE, 1);
    made.mutable_job()->clear_quorum();
    made.mutable_job()->set_grace_seconds(10);
    made.mutable_sender()->set_group(group);
    made.mutable_sender()->set_incarnation(incarnation);
    return made;
  };
  Start(request(center, 0, 1));
  ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), request(center, 1, 1)).ok());
  const std::vector<float> values(8, 1);
  const auto waiting = Connect();
  ASSERT_TRUE(waiting->SendOpening(MakeSender(center, 0)).ok());
  ASSERT_TRUE(SendValues(*waiting, {1, 0, 8}, values).ok());
  const std::shared_ptr<Shard> shard = store_->Find(MakeSender(center)).value();
  const absl::Time give_up = absl::Now() + kDirectPatience;
  while (shard->until_look() == absl::InfiniteDuration() && absl::Now() < give_up)
    absl::SleepFor(absl::Milliseconds(1));
  ASSERT_NE(shard->until_look(), absl::InfiniteDuration()) << "no turn waits";

  const TestCenter later = Later(center, 1);
  ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), request(later, 0, 5)).ok());
  const absl::StatusOr<std::vector<float>> refused = ReceiveAnswer(*waiting, {1, 0, 8});
  ASSERT_FALSE(refused.ok());
  if (!absl::IsUnavailable(refused.status())) ExpectOver(refused.status());
  const auto again = Connect();
  ASSERT_TRUE(again->SendOpening(MakeSender(center, 0)).ok());
  ExpectOver(Exchange(*again, {1, 0, 8}, values).status());
  const auto next = Connect();
  ASSERT_TRUE(next->SendOpening(MakeSender(later, 0, 0, 5)).ok());
  EXPECT_THAT(Exchange(*next, {41, 0, 8}, values).value(), Each(-1.0f)) << "the center, one step from zeros";
}

}  // namespace
}  // namespace hooke
