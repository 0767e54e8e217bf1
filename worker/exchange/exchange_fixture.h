#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_FIXTURE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_FIXTURE_H_

// The fixture of ExchangeClient's tests: a group of one rank, and two servers in memory.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/in_memory_server.h"

namespace hooke {

inline constexpr double kAlpha = 0.25;

// Returns an exchange of the whole slice. The default timeout is generous; tests of deadlines pass their own.
inline ExchangeCall Call(uint64_t sequence, absl::Duration timeout = absl::Seconds(30)) {
  return {sequence, {timeout, timeout, absl::InfiniteDuration(), timeout}};
}

inline v1::SaveRequest SaveOf(const v1::Sender& sender) {
  v1::SaveRequest request;
  *request.mutable_sender() = sender;
  return request;
}

inline constexpr uint64_t kValues = 45 * kBlockValues + 100;  // There are 46 blocks, more than two windows.

// Applies answers to a group's values, as training does with rule `elastic`.
inline AnswerSink Into(std::vector<float>& group) {
  return [&group](const BlockAnswer& answer) {
    ApplyElasticAnswer(answer.values, absl::MakeSpan(group).subspan(answer.first, answer.values.size()));
  };
}

inline std::vector<float> Ramp(float start, float step) {
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
    ASSERT_TRUE(center_->Attach(initial, SteadyTime() + absl::Seconds(10)).ok());
  }

  std::unique_ptr<ExchangeClient> Client(const Encoding& encoding = {}) {
    ExchangeOptions options;
    options.encoding = encoding;
    options.sender = sender_;
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get(), calls_[1].get()};
    options.recreate = [this](size_t server, absl::Time deadline) {
      return center_->AttachShard(server, recreate_from_, deadline).status();
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
    const absl::Time end = SteadyTime() + absl::Seconds(20);
    while (client.Skips("first:1") && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
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
  std::vector<float> recreate_from_;  // The exchanges create a lost shard again from these values.
  std::atomic<int> absences_{0};      // How often a server was reported absent.
  absl::Mutex mutex_;
  std::vector<std::string> setbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_FIXTURE_H_
