#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "proto/job.pb.h"
#include "tests/benchmarks/exchange/ways.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"

namespace hooke {
namespace {

constexpr double kAlpha = 0.5;

// A job: its center on all servers, and this rank's exchanges with it.
class Job {
 public:
  Job(const WayOptions& options, const DialOptions& dial, const std::string& id, uint64_t count)
      : options_(options), partition_(count) {
    for (const std::string& address : options.servers) {
      servers_.push_back(DialServer(address, dial));
      calls_.push_back(servers_.back().get());
    }
    sender_.set_job_id(id);
    sender_.set_rank(options.rank);
    sender_.set_incarnation(1);
  }

  // Rank 0 creates the center; the other ranks' exchanges wait for it.
  absl::Status Open(absl::Span<const float> initial) {
    if (options_.rank == 0) {
      if (absl::Status status = CreateCenter(initial); !status.ok()) return status;
    }
    ExchangeOptions exchange;
    exchange.sender = sender_;
    exchange.slices = options_.ranks;
    exchange.partition = partition_;
    exchange.servers = calls_;
    exchange.recreate = [](size_t, absl::Time) {
      absl::SleepFor(absl::Milliseconds(20));
      return absl::UnavailableError("rank 0 has not created the center");
    };
    client_ = std::make_unique<ExchangeClient>(std::move(exchange));
    return absl::OkStatus();
  }

  Range slice() const { return client_->slice(); }

  absl::Status Exchange(absl::Span<float> x) {
    const ExchangeCall call = {++sequence_, {options_.timeout, options_.timeout}};
    client_->Start(call, x, [x](const BlockAnswer& answer) {
      ApplyElasticAnswer(answer.values, x.subspan(answer.first, answer.values.size()));
    });
    for (const ServerOutcome& outcome : client_->Wait()) {
      if (!outcome.status.ok()) return outcome.status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CreateCenter(absl::Span<const float> initial) const {
    CenterOptions center;
    center.sender = sender_;
    center.job.set_rule(v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(kAlpha);
    center.job.set_groups(1);
    center.job.set_ranks(options_.ranks);
    center.layout.parameters.push_back({"w", {partition_.values()}});
    center.partition = partition_;
    center.servers = calls_;
    return CenterClient(center).Attach(initial, SteadyTime() + options_.timeout).status();
  }

  const WayOptions options_;
  const Partition partition_;
  v1::Sender sender_;
  std::vector<std::unique_ptr<ServerCalls>> servers_;
  std::vector<ServerCalls*> calls_;
  std::unique_ptr<ExchangeClient> client_;
  uint64_t sequence_ = 0;
};

// Makes two exchanges of a separate job and compares the answers with the rule, computed here.
absl::Status CheckAnswers(const WayOptions& options, const DialOptions& dial, const std::string& id, uint64_t count) {
  std::vector<float> center(count);
  std::vector<float> x(count);
  for (uint64_t i = 0; i < count; ++i) {
    center[i] = static_cast<float>(i % 1000);
    x[i] = static_cast<float>(i % 77) * 0.125f;
  }
  Job job(options, dial, id, count);
  if (absl::Status status = job.Open(center); !status.ok()) return status;
  std::vector<float> expected = x;
  std::vector<float> answer(count);
  for (int exchange = 0; exchange < 2; ++exchange) {
    if (absl::Status status = job.Exchange(absl::MakeSpan(x)); !status.ok()) return status;
    ElasticExchange(kAlpha, expected, absl::MakeSpan(center), absl::MakeSpan(answer));
    ApplyElasticAnswer(answer, absl::MakeSpan(expected));
  }
  const Range slice = job.slice();
  for (uint64_t i = slice.begin; i < slice.end; ++i) {
    if (x[i] == expected[i]) continue;
    return absl::DataLossError(
        absl::StrCat("value ", i, " is ", x[i], " after two exchanges instead of ", expected[i]));
  }
  return absl::OkStatus();
}

}  // namespace

Prepare HookeWay(const WayOptions& options, const std::string& way) {
  const DialOptions dial = {way == "hooke-unix", way == "hooke"};
  auto prepared = std::make_shared<int>(0);
  return [options, way, dial, prepared](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    const int number = ++*prepared;
    absl::Status checked = CheckAnswers(options, dial, absl::StrCat("check-", way, "-", number), task.count);
    if (!checked.ok()) return checked;
    // If zeros are exchanged with a center of zeros, all values stay 0. So none grows out of range or becomes
    // subnormal.
    auto job = std::make_shared<Job>(options, dial, absl::StrCat("time-", way, "-", number), task.count);
    if (absl::Status status = job->Open(std::vector<float>(task.count)); !status.ok()) return status;
    Rival rival = OnVector(way, task.count, [job](absl::Span<float> x) { return job->Exchange(x); });
    rival.has_result = false;  // CheckAnswers has checked the answers.
    return std::vector<Rival>{rival};
  };
}

}  // namespace hooke
