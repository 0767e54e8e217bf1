// The numbers of exchanges: each block is applied once and by the rule, whatever breaks on its way.

#include "worker/exchange/exchange_client.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "algorithms/compression.h"
#include "algorithms/elastic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "worker/exchange/exchange_fixture.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/exchange/run_exchange.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Three exchanges over two servers move the group and the center by exactly the elastic rule, bit by bit. Each server
// gets one stream.
TEST_F(ExchangeTest, ExactNumbers) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = x;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    ExpectAllOk(RunExchange(*client, Call(sequence), group, Into(group)));
    ApplyByHand(x, center);
  }
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
  EXPECT_EQ(servers_[0]->streams(), 1);
  EXPECT_EQ(servers_[1]->streams(), 1);
}

// Streams break again and again, and answers are lost on the way. The result is the same as without breaks, because
// every block is applied once.
TEST_F(ExchangeTest, BrokenStreamsAreExact) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = x;
  uint64_t sequence = 0;
  for (int after : {1, 2, 3, 4, 5, 6}) {  // An exchange has six messages for this server.
    servers_[0]->BreakAfterApplying(after);
    ExpectAllOk(RunExchange(*client, Call(++sequence), group, Into(group)));
    ApplyByHand(x, center);
  }
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
  EXPECT_GE(servers_[0]->repeated(), 6);
  EXPECT_EQ(servers_[1]->repeated(), 0);
}

// Blocks that were applied but not answered by the deadline are answered before the next exchange begins. Their answers
// belong to the values sent then. So the sum of center and group stays exactly the same, although the group has trained
// on meanwhile.
TEST_F(ExchangeTest, LateAnswersAreSettledBeforeTheNextExchange) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetLosingAnswers(true);
  std::vector<ServerOutcome> outcomes = RunExchange(*client, Call(1, absl::Seconds(1)), group, Into(group));
  EXPECT_FALSE(outcomes[0].status.ok());
  EXPECT_TRUE(outcomes[1].status.ok());
  EXPECT_EQ(group.front(), 5.0f);
  for (float& value : group) value += 8;  // The group trains on.

  servers_[0]->SetLosingAnswers(false);
  ExpectAllOk(RunExchange(*client, Call(2), group, Into(group)));
  // The numbers for a value of the first window: the late answer moves x = 13 by -1. Then x = 12 is exchanged with c =
  // 2.
  EXPECT_EQ(group.front(), 12 - (12 - 2) * 0.25f);
  EXPECT_EQ(Center().front(), 2 + (12 - 2) * 0.25f);
  EXPECT_EQ(group.front() + Center().front(), 5 + 8 + 1);
}

// A compressed message that is sent again has the same bytes, on a new stream or in a later exchange. The group's
// values may have changed meanwhile. BlockAnswer::sent then has the values that the server decoded.
TEST_F(ExchangeTest, CompressedBlocksAreSentAgainAsTheyWere) {
  Attach(Ramp(1, 0.001f));
  std::vector<float> center = Ramp(1, 0.001f);
  std::unique_ptr<ExchangeClient> client = Client({Compression::kInt8, 0});
  const std::vector<float> first = Ramp(-2, 0.0021f);
  std::vector<float> group = first;
  servers_[0]->BreakAfterApplying(2);
  const auto by_hand = [&](const std::vector<float>& sent) {
    std::vector<float> rounded = sent;
    RoundToEncoding({Compression::kInt8, 0}, absl::MakeSpan(rounded));
    std::vector<float> answer(kValues);
    ElasticExchange(kAlpha, rounded, absl::MakeSpan(center), absl::MakeSpan(answer));
    return answer;
  };
  ExpectAllOk(RunExchange(*client, Call(1), group, Into(group)));
  std::vector<float> x = first;
  ApplyElasticAnswer(by_hand(first), absl::MakeSpan(x));
  EXPECT_EQ(group, x);
  EXPECT_GE(servers_[0]->repeated(), 4);

  for (const auto& server : servers_) server->SetLosingAnswers(true);
  RunExchange(*client, Call(2, absl::Milliseconds(200)), group, Into(group));
  const std::vector<float> second = group;
  for (float& value : group) value += 8;
  for (const auto& server : servers_) server->SetLosingAnswers(false);
  std::vector<float> rounded = second;
  RoundToEncoding({Compression::kInt8, 0}, absl::MakeSpan(rounded));
  absl::Mutex mutex;
  uint64_t late = 0;
  const AnswerSink check = [&](const BlockAnswer& answer) {
    absl::MutexLock lock(&mutex);
    late += std::equal(answer.sent.begin(), answer.sent.end(), rounded.begin() + answer.first) ? 1 : 0;
  };
  ExpectAllOk(RunExchange(*client, Call(3), group, check));
  EXPECT_GT(late, 0u);  // A window of blocks on each server was written by the deadline.
}

// Values that are not finite cannot be compressed. The exchange ends at once, and its error names the first such value.
TEST_F(ExchangeTest, CompressedValuesAreFinite) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client({Compression::kFloat16, 0});
  std::vector<float> group = Ramp(5, 0);
  group[kBlockValues + 3] = std::numeric_limits<float>::infinity();
  const std::vector<ServerOutcome> outcomes = RunExchange(*client, Call(1), group, Into(group));
  EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcomes[0].status.message()),
              HasSubstr("from value 0 on, what cannot be sent: value 16387 is inf; only finite values can be encoded"));
  EXPECT_TRUE(outcomes[1].status.ok());
}

// Errors that trying again does not cure end the exchange at once and keep their code.
TEST_F(ExchangeTest, FinalErrorsEndAtOnce) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  for (const absl::Status& error : {absl::AbortedError("replaced"), absl::FailedPreconditionError("job ended"),
                                    absl::InvalidArgumentError("not finite")}) {
    servers_[0]->SetError(error);
    std::unique_ptr<ExchangeClient> client = Client();
    std::vector<ServerOutcome> outcomes = RunExchange(*client, Call(1), group, Into(group));
    EXPECT_EQ(outcomes[0].status.code(), error.code());
    EXPECT_TRUE(IsFatalExchangeError(outcomes[0].status));
  }
}

// Each rank of a group exchanges its own slice. The slices cover the vector, and the result is that of one rank alone.
TEST_F(ExchangeTest, RanksExchangeTheirOwnSlices) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::vector<float> group = x;
  uint64_t covered = 0;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ExchangeOptions options;
    options.sender = sender_;
    options.sender.set_rank(rank);
    options.slices = 3;
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get(), calls_[1].get()};
    ExchangeClient client(std::move(options));
    covered += client.slice().size();
    for (const ServerOutcome& outcome : RunExchange(client, Call(1), group, Into(group)))
      EXPECT_TRUE(outcome.status.ok());
  }
  ApplyByHand(x, center);
  EXPECT_EQ(covered, kValues);
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
}

// Destroying a client ends its open streams.
TEST_F(ExchangeTest, DestroyedWhileIdle) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  ExpectAllOk(RunExchange(*Client(), Call(1), group, Into(group)));
}

// A group with one server and a slice so small that Start writes the message itself.
class SmallExchangeTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSmall = 100;

  SmallExchangeTest() {
    sender_.set_job_id("job-1");
    sender_.set_incarnation(1);
    v1::AttachRequest request;
    *request.mutable_sender() = sender_;
    request.mutable_job()->set_rule(v1::AveragingSpec::ELASTIC);
    request.mutable_job()->set_alpha(kAlpha);
    request.mutable_job()->set_shard_count(1);
    request.mutable_layout()->add_parameters()->add_shape(kSmall);
    EXPECT_TRUE(calls_->Attach(request, absl::InfiniteFuture()).ok());
    const std::vector<float> initial(kSmall, 1.0f);
    EXPECT_TRUE(calls_->Initialize({sender_, Partition(kSmall), {0, kSmall}, initial}, absl::InfiniteFuture()).ok());
    ExchangeOptions options;
    options.sender = sender_;
    options.partition = Partition(kSmall);
    options.servers = {calls_.get()};
    client_ = std::make_unique<ExchangeClient>(std::move(options));
  }

  absl::Status Exchange(uint64_t sequence, absl::Duration timeout = absl::Seconds(30)) {
    return RunExchange(*client_, Call(sequence, timeout), group_, Into(group_))[0].status;
  }

  InMemoryServer server_{"only:1"};
  std::unique_ptr<ServerCalls> calls_ = server_.Dial();
  v1::Sender sender_;
  std::unique_ptr<ExchangeClient> client_;
  std::vector<float> group_ = std::vector<float>(kSmall, 5.0f);
};

// Small exchanges, which their caller writes, follow the elastic rule bit by bit, over one stream.
TEST_F(SmallExchangeTest, ExactNumbers) {
  std::vector<float> x = group_;
  std::vector<float> center(kSmall, 1.0f);
  std::vector<float> answer(kSmall);
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    ASSERT_TRUE(Exchange(sequence).ok());
    ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
    ApplyElasticAnswer(answer, absl::MakeSpan(x));
  }
  EXPECT_EQ(group_, x);
  EXPECT_EQ(server_.center(), center);
  EXPECT_EQ(server_.streams(), 1);
}

// The stream of a small exchange breaks after the server has applied the message. The message is sent again on a new
// stream, and is applied only once.
TEST_F(SmallExchangeTest, BrokenStream) {
  ASSERT_TRUE(Exchange(1).ok());
  server_.BreakAfterApplying(1);
  ASSERT_TRUE(Exchange(2).ok());
  EXPECT_EQ(group_.front() + server_.center().front(), 6.0f);
  EXPECT_EQ(server_.applied(), 2);
  EXPECT_EQ(server_.repeated(), 1);
  EXPECT_EQ(server_.streams(), 2);
}

// A server stops between two small exchanges. The second one ends at its deadline, and its answer comes with the third.
TEST_F(SmallExchangeTest, StoppedServer) {
  ASSERT_TRUE(Exchange(1).ok());
  server_.SetLosingAnswers(true);
  EXPECT_EQ(Exchange(2, absl::Milliseconds(100)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(group_.front(), 4.0f);
  server_.SetLosingAnswers(false);
  ASSERT_TRUE(Exchange(3).ok());
  EXPECT_EQ(group_.front() + server_.center().front(), 6.0f);
  EXPECT_EQ(server_.applied(), 3);
}

}  // namespace
}  // namespace hooke
