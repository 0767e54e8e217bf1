#include "worker/exchange/exchange_client.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "algorithms/compression.h"
#include "algorithms/elastic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr double kAlpha = 0.25;
// Returns an exchange of the whole slice. The default timeout is generous; tests of deadlines pass their own.
ExchangeCall Call(uint64_t sequence, absl::Duration timeout = absl::Seconds(30)) {
  return {sequence, {timeout, timeout}};
}

v1::SaveRequest SaveOf(const v1::Sender& sender) {
  v1::SaveRequest request;
  *request.mutable_sender() = sender;
  return request;
}

constexpr uint64_t kValues = 45 * kBlockValues + 100;  // There are 46 blocks, more than two windows.

// Applies answers to a group's values, as training does with rule `elastic`.
AnswerSink Into(std::vector<float>& group) {
  return [&group](const BlockAnswer& answer) {
    ApplyElasticAnswer(answer.values, absl::MakeSpan(group).subspan(answer.first, answer.values.size()));
  };
}

std::vector<float> Ramp(float start, float step) {
  std::vector<float> values(kValues);
  for (uint64_t i = 0; i < kValues; ++i) values[i] = start + step * static_cast<float>(i % 1000);
  return values;
}

// Two servers in memory and one group of one rank that exchanges with both.
class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    for (auto& server : servers_) calls_.push_back(server->Dial());
    sender_.set_job_id("job-1");
    sender_.set_incarnation(1);
    CenterOptions center;
    center.sender = sender_;
    center.job.set_rule(v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(kAlpha);
    center.job.set_groups(1);
    center.job.set_ranks(1);
    center.layout.parameters.push_back({"w", {kValues}});
    center.partition = Partition(kValues);
    center.servers = {calls_[0].get(), calls_[1].get()};
    center.sleep = [](absl::Duration) {};
    center_ = std::make_unique<CenterClient>(center);
  }

  void Attach(const std::vector<float>& initial) {
    ASSERT_TRUE(center_->Attach(initial, absl::Now() + absl::Seconds(10)).ok());
  }

  std::unique_ptr<ExchangeClient> Client(const Encoding& encoding = {}) {
    ExchangeOptions options;
    options.encoding = encoding;
    options.sender = sender_;
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get(), calls_[1].get()};
    options.recreate = [this](size_t server, absl::Span<const float> vector, absl::Time deadline) {
      return center_->AttachShard(server, vector, deadline).status();
    };
    options.on_setback = [this](const std::string& text) {
      absl::MutexLock lock(&mutex_);
      setbacks_.push_back(text);
    };
    options.on_presence = [this](size_t, std::optional<absl::Time> since) {
      if (since.has_value()) ++absences_;
    };
    return std::make_unique<ExchangeClient>(std::move(options));
  }

  std::vector<float> Center() {
    std::vector<float> center = servers_[0]->center();
    std::vector<float> second = servers_[1]->center();
    center.insert(center.end(), second.begin(), second.end());
    return center;
  }

  static void AwaitBack(const ExchangeClient& client) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (client.Skips("first:1") && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_FALSE(client.Skips("first:1"));
  }

  std::vector<std::string> Setbacks() {
    absl::MutexLock lock(&mutex_);
    return setbacks_;
  }
  void AwaitSetbacks(size_t count) {
    const auto come = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return setbacks_.size() >= count; };
    absl::MutexLock lock(&mutex_);
    ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&come), absl::Seconds(20)));
  }

  static void ExpectAllOk(const std::vector<ServerOutcome>& outcomes) {
    ASSERT_EQ(outcomes.size(), 2u);
    for (const ServerOutcome& outcome : outcomes) EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }

  // Applies one exchange to a group's values and to the center, by the formula.
  static void ApplyByHand(std::vector<float>& x, std::vector<float>& center) {
    std::vector<float> answer(x.size());
    ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
    ApplyElasticAnswer(answer, absl::MakeSpan(x));
  }

  std::vector<std::unique_ptr<InMemoryServer>> servers_ = TwoInMemoryServers();
  std::vector<std::unique_ptr<ServerCalls>> calls_;
  v1::Sender sender_;
  std::unique_ptr<CenterClient> center_;
  std::atomic<int> absences_{0};  // How often a server was reported absent.
  absl::Mutex mutex_;
  std::vector<std::string> setbacks_ ABSL_GUARDED_BY(mutex_);
};

// Three exchanges over two servers move the group and the center by exactly the elastic rule, bit by bit. Each server
// gets one stream.
TEST_F(ExchangeTest, ExactNumbers) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = x;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    ExpectAllOk(client->Exchange(Call(sequence), group, Into(group)));
    ApplyByHand(x, center);
  }
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
  EXPECT_EQ(servers_[0]->streams(), 1);
  EXPECT_EQ(servers_[1]->streams(), 1);
}

// Streams break again and again, and answers are lost on the way. The values do not change, because every block is
// applied once.
TEST_F(ExchangeTest, BrokenStreamsAreExact) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = x;
  uint64_t sequence = 0;
  for (int after : {1, 2, 3, 4, 5, 6}) {  // The second server gets six messages.
    servers_[0]->BreakAfterApplying(after);
    ExpectAllOk(client->Exchange(Call(++sequence), group, Into(group)));
    ApplyByHand(x, center);
  }
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
  EXPECT_GE(servers_[0]->repeated(), 6);
  EXPECT_EQ(servers_[1]->repeated(), 0);
}

// If a server cannot be reached, only its part of the exchange fails. When the server is back, exchanges work again.
TEST_F(ExchangeTest, OneServerGone) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[1]->SetReachable(false);
  std::vector<ServerOutcome> outcomes = client->Exchange(Call(1, absl::Milliseconds(300)), group, Into(group));
  EXPECT_TRUE(outcomes[0].status.ok());
  EXPECT_EQ(outcomes[1].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(outcomes[1].status.message()), HasSubstr("second:2"));
  EXPECT_FALSE(IsFatalExchangeError(outcomes[1].status));
  EXPECT_EQ(group.front(), 4.0f);  // 5 - (5 - 1) / 4.
  EXPECT_EQ(group.back(), 5.0f);

  servers_[1]->SetReachable(true);
  ExpectAllOk(client->Exchange(Call(2), group, Into(group)));
  EXPECT_LT(group.back(), 5.0f);
}

// Blocks that were applied but not answered by the deadline are answered before the next exchange begins. Their answers
// belong to the values sent then. So the sum of center and group stays exactly the same, although the group has trained
// on meanwhile.
TEST_F(ExchangeTest, LateAnswersAreSettledBeforeTheNextExchange) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetLosingAnswers(true);
  std::vector<ServerOutcome> outcomes = client->Exchange(Call(1, absl::Milliseconds(200)), group, Into(group));
  EXPECT_FALSE(outcomes[0].status.ok());
  EXPECT_TRUE(outcomes[1].status.ok());
  EXPECT_EQ(group.front(), 5.0f);
  for (float& value : group) value += 8;  // The group trains on.

  servers_[0]->SetLosingAnswers(false);
  ExpectAllOk(client->Exchange(Call(2), group, Into(group)));
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
  ExpectAllOk(client->Exchange(Call(1), group, Into(group)));
  std::vector<float> x = first;
  ApplyElasticAnswer(by_hand(first), absl::MakeSpan(x));
  EXPECT_EQ(group, x);
  EXPECT_GE(servers_[0]->repeated(), 4);

  for (const auto& server : servers_) server->SetLosingAnswers(true);
  client->Exchange(Call(2, absl::Milliseconds(200)), group, Into(group));
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
  ExpectAllOk(client->Exchange(Call(3), group, check));
  EXPECT_GT(late, 0u);  // A window of blocks on each server was written by the deadline.
}

// Values that are not finite cannot be compressed. The exchange ends at once, and its error names the first such value.
TEST_F(ExchangeTest, CompressedValuesAreFinite) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client({Compression::kFloat16, 0});
  std::vector<float> group = Ramp(5, 0);
  group[kBlockValues + 3] = std::numeric_limits<float>::infinity();
  const std::vector<ServerOutcome> outcomes = client->Exchange(Call(1), group, Into(group));
  EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcomes[0].status.message()),
              HasSubstr("from value 0 on, what cannot be sent: value 16387 is inf; only finite values can be encoded"));
  EXPECT_TRUE(outcomes[1].status.ok());
}

// A server that has lost its shard gets it back from the group's values, within the exchange.
TEST_F(ExchangeTest, RecreatesALostShard) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  ExpectAllOk(client->Exchange(Call(1), group, Into(group)));
  servers_[0]->Forget();
  EXPECT_TRUE(servers_[0]->center().empty());
  ExpectAllOk(client->Exchange(Call(2), group, Into(group)));
  EXPECT_EQ(servers_[0]->center().front(), 4.0f);  // This is the group's own value, so the exchange changes nothing.
  EXPECT_EQ(group.front(), 4.0f);
}

// A server that failed the previous exchange comes back without its disk. It gets the exchange's whole time to take its
// shard again, not ExchangePatience::first: other groups may be creating the shard meanwhile.
TEST_F(ExchangeTest, RecreatesInTheFullTimeout) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetReachable(false);
  EXPECT_FALSE(client->Exchange(Call(1, absl::Milliseconds(100)), group, Into(group))[0].status.ok());
  servers_[0]->Forget();
  servers_[0]->MakeWait(100);
  servers_[0]->SetReachable(true);
  ExpectAllOk(client->Exchange({2, {absl::Seconds(30), absl::Milliseconds(200)}}, group, Into(group)));
}

// Errors that trying again does not cure end the exchange at once and keep their code.
TEST_F(ExchangeTest, FinalErrorsEndAtOnce) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  for (const absl::Status& error : {absl::AbortedError("replaced"), absl::FailedPreconditionError("job ended"),
                                    absl::InvalidArgumentError("not finite")}) {
    servers_[0]->SetError(error);
    std::unique_ptr<ExchangeClient> client = Client();
    std::vector<ServerOutcome> outcomes = client->Exchange(Call(1), group, Into(group));
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
    options.ranks = 3;
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get(), calls_[1].get()};
    ExchangeClient client(std::move(options));
    covered += client.slice().size();
    for (const ServerOutcome& outcome : client.Exchange(Call(1), group, Into(group))) EXPECT_TRUE(outcome.status.ok());
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
  ExpectAllOk(Client()->Exchange(Call(1), group, Into(group)));
}

// If a server has stopped without closing its connection, the exchange ends at its deadline. That holds even if the
// server has never answered.
TEST_F(ExchangeTest, StoppedServer) {
  Attach(Ramp(1, 0));
  servers_[0]->SetAnswering(false);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    std::vector<ServerOutcome> outcomes = client->Exchange(Call(sequence, absl::Milliseconds(100)), group, Into(group));
    EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(outcomes[1].status.ok()) << outcomes[1].status;
  }
  EXPECT_EQ(group.front(), 5.0f);
  servers_[0]->SetAnswering(true);
  ExpectAllOk(client->Exchange(Call(4), group, Into(group)));
  EXPECT_LT(group.front(), 5.0f);
}

// An exchange waits only once for a server that is away. Later exchanges skip it at once, however long their patience
// is, until it has answered a Locate call.
TEST_F(ExchangeTest, AnAbsentServerIsWaitedForOnce) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  uint64_t sequence = 0;
  ExpectAllOk(client->Exchange(Call(++sequence), group, Into(group)));
  for (const bool killed : {false, true}) {
    if (killed) {
      servers_[0]->SetReachable(false);
    } else {
      servers_[0]->SetAnswering(false);
    }
    ExchangeCall call = Call(++sequence, absl::Milliseconds(100));
    // With a refused connection, the exchange ends long before that.
    if (killed) call.patience.silence = absl::Hours(1);
    EXPECT_FALSE(client->Exchange(call, group, Into(group))[0].status.ok());
    EXPECT_TRUE(client->Skips("first:1"));
    EXPECT_FALSE(client->Skips("second:2"));
    const int streams = servers_[0]->streams();
    for (int i = 0; i < 100; ++i) {
      call = Call(++sequence, absl::Hours(1));
      call.patience.skips_absent = true;
      const std::vector<ServerOutcome> outcomes = client->Exchange(call, group, Into(group));
      EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_EQ(WantedServer(outcomes[0].status), "first:1");
      EXPECT_TRUE(outcomes[1].status.ok()) << outcomes[1].status;
    }
    EXPECT_EQ(servers_[0]->streams(), streams) << "nothing is tried on the caller's time";
    servers_[0]->SetReachable(true);
    servers_[0]->SetAnswering(true);
    AwaitBack(*client);
    call = Call(++sequence);
    call.patience.skips_absent = true;
    ExpectAllOk(client->Exchange(call, group, Into(group)));
  }
}

// Exchanges try a server that waits for a quorum again and again without pauses. Otherwise two groups could miss each
// other for minutes. The server is not reported absent.
TEST_F(ExchangeTest, AServerThatWaitsForAQuorumIsNotAway) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetWaitingForGroups(true);
  uint64_t sequence = 0;
  const auto call = [&sequence](absl::Duration patience) {
    ExchangeCall call = Call(++sequence, patience);
    call.patience.skips_absent = call.patience.awaits_quorum = true;
    return call;
  };
  const absl::Time start = absl::Now();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(client->Exchange(call(absl::Milliseconds(20)), group, Into(group))[0].status.ok());
    AwaitBack(*client);
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(10)) << "the pauses between tries have grown";
  servers_[0]->SetWaitingForGroups(false);
  ExpectAllOk(client->Exchange(call(absl::Seconds(30)), group, Into(group)));
  EXPECT_EQ(absences_, 0);

  servers_[0]->SetAnswering(false);
  EXPECT_FALSE(client->Exchange(call(absl::Milliseconds(20)), group, Into(group))[0].status.ok());
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (absences_ == 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(absences_, 1) << "a server that answers nothing is away under such a rule, too";
}

// A server that can be reached may also answer UNAVAILABLE. Such an exchange is repeated for longer than one with a
// server that cannot be reached.
TEST_F(ExchangeTest, UnavailableByTheServersWordIsNoBrokenConnection) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetError(absl::UnavailableError("the round is not complete; try again"));
  ExchangeCall call = Call(1);
  call.patience.first = absl::Milliseconds(1);
  client->Start(call, group, Into(group));
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (servers_[0]->streams() < 4 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(servers_[0]->streams(), 4);
  servers_[0]->SetError(absl::OkStatus());
  ExpectAllOk(client->Wait());
}

// A Locate call that fails right after a restart of the server is repeated, even if no further exchange follows.
TEST_F(ExchangeTest, ASetbackOutlivesAFailedQuestion) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  EXPECT_TRUE(calls_[0]->Save(SaveOf(sender_), absl::InfiniteFuture()).ok());
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    ExpectAllOk(client->Exchange(Call(sequence), group, Into(group)));
  }
  servers_[0]->FailQuestions(1);
  servers_[0]->Restart();
  ExpectAllOk(client->Exchange(Call(6), group, Into(group)));
  AwaitSetbacks(1);
  EXPECT_THAT(Setbacks()[0], HasSubstr("went back by 5 exchanges"));
}

// The last exchange of a job reaches a server that was away, without waiting until it has answered a Locate call.
TEST_F(ExchangeTest, TheLastExchangeSkipsNobody) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetReachable(false);
  EXPECT_FALSE(client->Exchange(Call(1, absl::Milliseconds(100)), group, Into(group))[0].status.ok());
  servers_[0]->SetReachable(true);
  ExpectAllOk(client->Exchange(Call(2), group, Into(group)));
}

// A server that restarts from its snapshot tells which exchanges the snapshot has. The group reports once which
// exchanges are lost.
TEST_F(ExchangeTest, ASnapshotTakesExchangesBack) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  uint64_t sequence = 0;
  const auto exchange = [&](int times) {
    for (int i = 0; i < times; ++i) ExpectAllOk(client->Exchange(Call(++sequence), group, Into(group)));
  };
  exchange(3);
  EXPECT_TRUE(calls_[0]->Save(SaveOf(sender_), absl::InfiniteFuture()).ok());
  exchange(7);
  servers_[0]->Restart();
  exchange(2);
  AwaitSetbacks(1);
  EXPECT_THAT(Setbacks()[0],
              testing::MatchesRegex("server first:1 came back from its snapshot of .*Z: parameters "
                                    "0-376,831 of the center \\(51 %\\) went back by 7 exchanges, .* s"));
  exchange(5);
  EXPECT_EQ(Setbacks().size(), 1u);
}

// The error names the limit that has passed: the one for a server's answer, or the one for the whole exchange.
TEST_F(ExchangeTest, SaysWhichTimeHasPassed) {
  Attach(Ramp(1, 0));
  servers_[0]->SetAnswering(false);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  ExchangeCall call = Call(1, absl::Milliseconds(100));
  EXPECT_THAT(std::string(client->Exchange(call, group, Into(group))[0].status.message()),
              testing::HasSubstr("server first:1 did not answer within 100ms"));
  call = Call(2, absl::Seconds(10));
  call.patience.first = absl::Seconds(10);
  call.patience.whole = absl::Milliseconds(150);
  client->Start(call, group, Into(group));
  absl::SleepFor(absl::Milliseconds(200));  // In this time the group could have trained.
  EXPECT_THAT(std::string(client->Wait()[0].status.message()),
              testing::HasSubstr("the exchange with server first:1 was not complete within 150ms"));
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
    return client_->Exchange(Call(sequence, timeout), group_, Into(group_))[0].status;
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

// Attach creates the center from the first group's values. It waits where a server answers WAIT. It returns the lowest
// sequence of the servers.
TEST_F(ExchangeTest, AttachCreatesThenResumes) {
  servers_[1]->MakeWait(3);
  std::vector<float> initial = Ramp(1, 0.5f);
  absl::StatusOr<Attached> attached = center_->Attach(initial, absl::Now() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->last_sequence, 0u);
  EXPECT_EQ(attached->window_blocks, 16u);
  EXPECT_EQ(Center(), initial);

  std::vector<float> group = Ramp(2, 0);
  ExpectAllOk(Client()->Exchange(Call(48), group, Into(group)));
  servers_[0]->SetReachable(false);
  EXPECT_EQ(Client()->Exchange(Call(64, absl::Milliseconds(50)), group, Into(group))[0].status.code(),
            absl::StatusCode::kDeadlineExceeded);
  servers_[0]->SetReachable(true);
  attached = center_->Attach(Ramp(9, 9), absl::Now() + absl::Seconds(10));
  ASSERT_TRUE(attached.ok());
  EXPECT_EQ(attached->last_sequence, 48u);

  std::vector<float> pulled(kValues);
  ASSERT_TRUE(center_->Pull(absl::MakeSpan(pulled), absl::Now() + absl::Seconds(10)).ok());
  EXPECT_EQ(pulled, Center());
}

// An attach that cannot succeed ends at its deadline and names the server and its last error.
TEST_F(ExchangeTest, AttachNamesTheServerThatDoesNotAnswer) {
  servers_[1]->SetReachable(false);
  absl::StatusOr<Attached> attached = center_->Attach(Ramp(1, 0), absl::Now() + absl::Milliseconds(300));
  EXPECT_EQ(attached.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(attached.status().message()), HasSubstr("second:2"));
  EXPECT_THAT(std::string(attached.status().message()), HasSubstr("connection refused"));
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
  absl::Status status = CenterClient(other).Pull(absl::MakeSpan(pulled), absl::Now() + absl::Seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("parameter 0 of the center is w float32 [737380] but the model has v float32 [2, 368690]"));
}

}  // namespace
}  // namespace hooke
