// Measures what it costs a message of 256 KiB that the shard records it for a trace. Threads send messages of an
// elastic rule, as ExchangeSession does: alternately with and without a call of ServedExchanges::Add. Prints the
// medians of both and the median of the difference of pairs, and checks that the list has what was sent.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "server/parameters/served_exchanges.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kMessageValues = 64 << 10;  // 256 KiB.
constexpr int kPairs = 20000;

struct Times {
  std::vector<int64_t> with, without, difference;
};

int64_t MedianOf(std::vector<int64_t>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Sends one message of the group, and returns the nanoseconds that it took.
int64_t Send(Shard& shard, uint32_t group, uint64_t sequence, bool records, const std::vector<float>& values,
             std::vector<float>& answer) {
  const absl::Time arrived = shard.meter().Now();
  Turn turn;
  turn.exchange = {{group, 0, 1}, sequence, 0};
  for (uint64_t done = 0; done < values.size(); done += kBlockValues) {
    turn.exchange.first = done;
    turn.values = absl::MakeConstSpan(values).subspan(done, kBlockValues);
    turn.answer = absl::MakeSpan(answer).subspan(done, kBlockValues);
    if (!shard.Begin(turn)->ok()) std::abort();
  }
  const uint64_t bytes = 4 * values.size();
  const absl::Time answered = shard.meter().Answered({group, arrived, bytes, bytes});
  if (records) {
    shard.served()->Add({{group, 0, 1, sequence},
                         absl::ToUnixNanos(arrived),
                         absl::ToUnixNanos(answered),
                         absl::ToInt64Nanoseconds(turn.contended),
                         bytes,
                         bytes});
  }
  return absl::ToInt64Nanoseconds(SteadyTime() - arrived);
}

Times SendOften(Shard& shard, uint32_t group) {
  std::vector<float> values(kMessageValues, 1.0f), answer(kMessageValues);
  Times times;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const bool first = i % 2 == 0;
    const int64_t one = Send(shard, group, 2 * i + 1, first, values, answer);
    const int64_t other = Send(shard, group, 2 * i + 2, !first, values, answer);
    times.with.push_back(first ? one : other);
    times.without.push_back(first ? other : one);
    times.difference.push_back(first ? one - other : other - one);
  }
  return times;
}

// True: the list is right.
bool Run(uint32_t groups) {
  TestCenter center;
  center.groups = groups;
  center.values = kMessageValues;
  const std::unique_ptr<Shard> shard =
      Shard::Create(PlanShard(MakeAttachRequest(center), kBlockValues).value()).value();
  AttachGroup(*shard, 0);
  const std::vector<float> zeros(kBlockValues);
  for (uint64_t block = 0; block < shard->blocks(); ++block) {
    shard->WriteInitial(absl::UnixEpoch(), {}, shard->BlockRange(block).begin, zeros).IgnoreError();
  }
  shard->CompleteInitialize({}).IgnoreError();
  for (uint32_t group = 0; group < groups; ++group) AttachGroup(*shard, group);
  std::vector<Times> all(groups);
  std::vector<std::thread> threads;
  for (uint32_t group = 0; group < groups; ++group) {
    threads.emplace_back([&, group] { all[group] = SendOften(*shard, group); });
  }
  for (std::thread& thread : threads) thread.join();
  Times times;
  for (const Times& each : all) {
    times.with.insert(times.with.end(), each.with.begin(), each.with.end());
    times.without.insert(times.without.end(), each.without.begin(), each.without.end());
    times.difference.insert(times.difference.end(), each.difference.begin(), each.difference.end());
  }
  std::printf("%u threads: median of a message %.2f us with, %.2f us without; of the differences %.3f us\n", groups,
              static_cast<double>(MedianOf(times.with)) / 1000, static_cast<double>(MedianOf(times.without)) / 1000,
              static_cast<double>(MedianOf(times.difference)) / 1000);
  const std::vector<ServedRow> rows = shard->served()->Read();
  return rows.size() == ServedExchanges::kRowsMax && rows.back().messages == 1;
}

}  // namespace
}  // namespace hooke

int main() {
  bool right = true;
  for (const uint32_t groups : {1, 2, 8}) right = hooke::Run(groups) && right;
  return right ? 0 : 1;
}
