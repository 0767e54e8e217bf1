// Attaching to a center on two servers, and pulling it.

#include "worker/exchange/center_client.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/exchange_fixture.h"
#include "worker/exchange/run_exchange.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Attach creates the center from the first group's values. It waits where a server answers WAIT. It returns the lowest
// sequence of the servers.
TEST_F(ExchangeTest, AttachCreatesThenResumes) {
  servers_[1]->MakeWait(3);
  std::vector<float> initial = Ramp(1, 0.5f);
  absl::StatusOr<Attached> attached = center_->Attach(initial, SteadyTime() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->last_sequence, 0u);
  EXPECT_EQ(attached->window_blocks, 16u);
  EXPECT_EQ(Center(), initial);

  std::vector<float> group = Ramp(2, 0);
  ExpectAllOk(RunExchange(*Client(), Call(48), group, Into(group)));
  servers_[0]->SetReachable(false);
  EXPECT_EQ(RunExchange(*Client(), Call(64, absl::Milliseconds(50)), group, Into(group))[0].status.code(),
            absl::StatusCode::kDeadlineExceeded);
  servers_[0]->SetReachable(true);
  attached = center_->Attach(Ramp(9, 9), SteadyTime() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok());
  EXPECT_EQ(attached->last_sequence, 48u);

  std::vector<float> pulled(kValues);
  ASSERT_TRUE(center_->Pull(absl::MakeSpan(pulled), SteadyTime() + absl::Seconds(10)).ok());
  EXPECT_EQ(pulled, Center());
}

// A later generation of the job, with more groups, goes on with the center, from its first step. A start of the
// earlier one is refused.
TEST_F(ExchangeTest, AttachGoesOnInALaterGeneration) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  const auto old_client = Client();
  ExpectAllOk(RunExchange(*old_client, Call(48), group, Into(group)));
  CenterOptions later;
  later.sender = sender_;
  later.sender.set_incarnation(5);
  later.job.set_rule(v1::AveragingSpec::ELASTIC);
  later.job.set_alpha(0.5);
  later.job.set_groups(2);
  later.job.set_first_incarnation(5);
  later.job.set_first_step(50);
  later.layout.parameters.push_back({"w", {kValues}});
  later.partition = Partition(kValues);
  later.servers = {calls_[0].get(), calls_[1].get()};
  const absl::StatusOr<Attached> attached = CenterClient(later).Attach(Ramp(9, 0), SteadyTime() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->last_sequence, 50u);
  EXPECT_EQ(Center(), Ramp(2, 0));
  for (const ServerOutcome& outcome : RunExchange(*old_client, Call(49), group, Into(group))) {
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kAborted) << outcome.status;
  }
  EXPECT_EQ(center_->Attach(group, SteadyTime() + absl::Seconds(10)).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(center_->Pace(1, SteadyTime() + absl::Seconds(10)).status().code(), absl::StatusCode::kAborted);
  sender_.set_incarnation(5);
  group = Ramp(4, 0);
  ExpectAllOk(RunExchange(*Client(), Call(51), group, Into(group)));
  EXPECT_EQ(Center(), Ramp(3, 0)) << "half of the distance from 2 to 4";
}

// An attach that cannot succeed ends at its deadline and names the server and its last error.
TEST_F(ExchangeTest, AttachNamesTheServerThatDoesNotAnswer) {
  servers_[1]->SetReachable(false);
  absl::StatusOr<Attached> attached = center_->Attach(Ramp(1, 0), SteadyTime() + absl::Seconds(2));
  EXPECT_EQ(attached.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(attached.status().message()), HasSubstr("second:2"));
  EXPECT_THAT(std::string(attached.status().message()), HasSubstr("connection refused"));
}

// A center of less than a block is on one server. While the other one is away, it can be read.
TEST_F(ExchangeTest, PullOfASmallCenterNeedsOneServer) {
  CenterOptions small;
  small.sender = sender_;
  small.job.set_rule(v1::AveragingSpec::ELASTIC);
  small.job.set_alpha(0.5);
  small.job.set_groups(1);
  small.job.set_ranks(1);
  small.layout.parameters.push_back({"w", {2}});
  small.partition = Partition(2);
  small.servers = {calls_[0].get(), calls_[1].get()};
  const CenterClient center(small);
  const std::vector<float> values = {3, 4};
  const size_t empty = small.partition.ShardValues({0, 2}).empty() ? 0 : 1;
  ASSERT_TRUE(small.partition.ShardValues({empty, 2}).empty());
  const absl::StatusOr<Attached> attached = center.AttachShard(1 - empty, values, SteadyTime() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok()) << attached.status();
  servers_[empty]->SetReachable(false);
  std::vector<float> pulled(2);
  const absl::Status status = center.Pull(absl::MakeSpan(pulled), SteadyTime() + absl::Seconds(10));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(pulled, values);
}

// A center of another model is refused. The error names the first parameter that differs.
TEST_F(ExchangeTest, PullRefusesAnotherLayout) {
  Attach(Ramp(1, 0));
  CenterOptions other;
  other.sender = sender_;
  other.layout.parameters.push_back({"v", {2, kValues / 2}});
  other.partition = Partition(kValues);
  other.servers = {calls_[0].get(), calls_[1].get()};
  std::vector<float> pulled(kValues);
  absl::Status status = CenterClient(other).Pull(absl::MakeSpan(pulled), SteadyTime() + absl::Seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("parameter 0 of the center is w float32 [737380] but the model has v float32 [2, 368690]"));
}

}  // namespace
}  // namespace hooke
