#include "tests/benchmarks/wide/groups.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"

namespace hooke {
namespace {

constexpr char kJob[] = "wide-1";
// The tolerance for the sum of all groups' values, which is well below the amount that one exchange moves.
constexpr double kRounding = 2e-3;

// A group of one rank: its connections to the server, its values, and the latencies of its exchanges.
class WideGroup {
 public:
  WideGroup(const WideOptions& options, uint32_t group)
      : options_(options),
        partition_(options.values),
        calls_(DialServer(options.server, {/*local=*/false, /*direct=*/!options.grpc})),
        values_(options.values, static_cast<float>(group % 7)) {
    sender_.set_job_id(kJob);
    sender_.set_group(group);
    sender_.set_incarnation(1);
  }

  const std::vector<float>& values() const { return values_; }
  const std::vector<double>& latencies_ms() const { return latencies_ms_; }
  const absl::Status& error() const { return error_; }

  CenterClient Center() const {
    CenterOptions center;
    center.sender = sender_;
    center.job.set_rule(v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(DefaultElasticAlpha(options_.groups));
    center.job.set_groups(options_.groups);
    center.job.set_ranks(1);
    center.layout.parameters.push_back({"w", {options_.values}});
    center.partition = partition_;
    center.servers = {calls_.get()};
    center.call_timeout = options_.timeout;
    return CenterClient(center);
  }

  // Attaches the group. The first group to attach creates the center from its own values.
  absl::Status Attach() {
    const absl::StatusOr<Attached> attached = Center().Attach(values_, SteadyTime() + options_.timeout);
    if (!attached.ok()) return attached.status();
    ExchangeOptions exchange;
    exchange.sender = sender_;
    exchange.partition = partition_;
    exchange.servers = {calls_.get()};
    exchange.window_blocks = attached->window_blocks;
    exchange.recreate = [](size_t, absl::Time) {
      return absl::FailedPreconditionError("the server has lost the center");
    };
    client_ = std::make_unique<ExchangeClient>(std::move(exchange));
    return Exchange();  // The first exchange opens the connection.
  }

  // Exchanges at `first`, `first` + period, ... before `end`. If an exchange is still running when the next is due, the
  // next waits, and its latency counts from when it was due.
  void Run(absl::Time first, absl::Time end) {
    for (absl::Time due = first; due < end && error_.ok(); due += options_.period) {
      absl::SleepFor(due - absl::Now());
      error_ = Exchange();
      latencies_ms_.push_back(absl::ToDoubleMilliseconds(absl::Now() - due));
    }
  }

 private:
  absl::Status Exchange() {
    client_->Start({++sequence_, {options_.timeout, options_.timeout}}, values_, [this](const BlockAnswer& answer) {
      ApplyElasticAnswer(answer.values, absl::MakeSpan(values_).subspan(answer.first, answer.values.size()));
    });
    for (const ServerOutcome& outcome : client_->Wait()) {
      if (!outcome.status.ok()) return outcome.status;
    }
    return absl::OkStatus();
  }

  const WideOptions options_;
  const Partition partition_;
  const std::unique_ptr<ServerCalls> calls_;
  v1::Sender sender_;
  std::vector<float> values_;
  std::unique_ptr<ExchangeClient> client_;
  uint64_t sequence_ = 0;
  std::vector<double> latencies_ms_;
  absl::Status error_;
};

// Checks that the sum of center and groups is the expected one. An exchange takes from the group what it gives to the
// center. So the sum is unchanged if each block of each exchange was applied exactly once.
absl::Status CheckSum(const std::vector<std::unique_ptr<WideGroup>>& groups, double expected, absl::Duration timeout) {
  std::vector<float> center(groups.front()->values().size());
  absl::Status pulled = groups.front()->Center().Pull(absl::MakeSpan(center), SteadyTime() + timeout);
  if (!pulled.ok()) return pulled;
  for (size_t i = 0; i < center.size(); ++i) {
    double sum = center[i];
    for (const auto& group : groups) sum += group->values()[i];
    if (std::abs(sum - expected) <= kRounding) continue;
    return absl::DataLossError(absl::StrCat("center and groups sum up to ", sum, " at value ", i, " instead of ",
                                            expected, ": an exchange was lost, or applied twice"));
  }
  return absl::OkStatus();
}

}  // namespace

struct WideRun::Groups {
  std::vector<std::unique_ptr<WideGroup>> all;
  double sum = 0;  // Expected sum of center and groups, equal at each index.
};

WideRun::WideRun(WideOptions options) : options_(std::move(options)), groups_(std::make_unique<Groups>()) {}
WideRun::~WideRun() = default;

absl::Status WideRun::Attach() {
  for (uint32_t group = 0; group < options_.groups; ++group) {
    groups_->all.push_back(std::make_unique<WideGroup>(options_, group));
    // Group 0 creates the center from its values, so they count twice.
    groups_->sum += groups_->all.back()->values()[0];
  }
  groups_->sum += groups_->all.front()->values()[0];
  for (const auto& group : groups_->all) {
    if (absl::Status status = group->Attach(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<WideResult> WideRun::Run() {
  // Starts are spread evenly over the period, in an order from the seed.
  std::vector<uint32_t> turns(options_.groups);
  for (uint32_t i = 0; i < options_.groups; ++i) turns[i] = i;
  std::shuffle(turns.begin(), turns.end(), std::mt19937(options_.seed));
  const absl::Time begin = absl::Now() + absl::Milliseconds(100);
  std::vector<std::thread> threads;
  threads.reserve(turns.size());
  for (uint32_t i = 0; i < options_.groups; ++i) {
    const absl::Time first = begin + options_.period * turns[i] / options_.groups;
    threads.emplace_back([this, i, first, begin] { groups_->all[i]->Run(first, begin + options_.length); });
  }
  for (std::thread& thread : threads) thread.join();
  WideResult result;
  for (const auto& group : groups_->all) {
    result.latencies_ms.insert(result.latencies_ms.end(), group->latencies_ms().begin(), group->latencies_ms().end());
    if (group->error().ok()) continue;
    ++result.errors;
    result.first_error = std::string(group->error().message());
  }
  if (result.errors > 0) return result;
  if (absl::Status status = CheckSum(groups_->all, groups_->sum, options_.timeout); !status.ok()) return status;
  return result;
}

}  // namespace hooke
