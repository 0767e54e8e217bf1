// Measures the CPU time that an exchange of a center costs a server, under rules with rounds, for few groups and for
// many. Groups are entries of a queue that a few threads serve, as DirectExchanges serves connections, but without
// sockets. This program checks that every round has the contributions of all groups. `tests/benchmarks/run rounds` runs
// it, and compares the CPU time with few groups to that with many.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 16 << 20;  // 64 MiB.

std::unique_ptr<Shard> MakeShard(uint32_t groups) {
  TestCenter center;
  center.groups = groups;
  center.values = kValues;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::AVERAGE, /*learning_rate=*/1);
  request.mutable_job()->set_parameters(kValues);
  request.mutable_job()->set_steps_per_epoch(1 << 20);
  request.mutable_job()->set_grace_seconds(10);
  auto shard = Shard::Create(PlanShard(request, kBlockValues).value()).value();
  AttachGroup(*shard, 0);
  const std::vector<float> zeros(kBlockValues);
  for (uint64_t block = 0; block < shard->blocks(); ++block) {
    const Range range = shard->BlockRange(block);
    shard->WriteInitial(absl::UnixEpoch(), {}, range.begin, absl::MakeSpan(zeros).subspan(0, range.size()))
        .IgnoreError();
  }
  shard->CompleteInitialize({}).IgnoreError();
  for (uint32_t group = 0; group < groups; ++group) AttachGroup(*shard, group);
  return shard;
}

// The groups of a shard, and the threads that serve them. Each group sends its number as every value. The center steps
// by the mean of all groups, at a learning rate of 1.
class Groups {
 public:
  Groups(Shard* shard, uint32_t groups) : shard_(shard), groups_(groups) {
    for (uint32_t number = 0; number < groups; ++number) {
      Group& group = groups_[number];
      group.values.assign(kBlockValues, static_cast<float>(number));
      group.answer.resize(kBlockValues);
      group.turn.done = [this, &group](absl::Status status) {
        group.outcome = std::move(status);
        absl::MutexLock lock(&mutex_);
        ready_.push_back(&group);
      };
    }
  }

  // Makes one exchange of all blocks for each group.
  absl::Status ExchangeAll(uint64_t sequence) {
    {
      absl::MutexLock lock(&mutex_);
      open_ = groups_.size();
      for (uint32_t number = 0; number < groups_.size(); ++number) {
        groups_[number].block = 0;
        groups_[number].turn.exchange = {{number, 0, 1}, sequence, 0};
        groups_[number].outcome.reset();
        ready_.push_back(&groups_[number]);
      }
    }
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([this] { Serve(); });
    }
    for (std::thread& thread : threads) thread.join();
    absl::MutexLock lock(&mutex_);
    return end_;
  }

 private:
  struct Group {
    Turn turn;
    uint64_t block = 0;
    std::optional<absl::Status> outcome;  // Of the turn that has ended; nullopt: none has begun.
    std::vector<float> values;
    std::vector<float> answer;
  };

  void Serve() {
    while (Group* const group = Take()) {
      if (GoOn(*group)) {
        absl::MutexLock lock(&mutex_);
        --open_;
      }
    }
  }

  // Waits for a group that can go on. Null: all groups have ended.
  Group* Take() {
    absl::MutexLock lock(&mutex_);
    const auto has_some = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !ready_.empty() || open_ == 0; };
    mutex_.Await(absl::Condition(&has_some));
    if (ready_.empty()) return nullptr;
    Group* const group = ready_.front();
    ready_.pop_front();
    return group;
  }

  // Goes on until the group has to wait. True: its exchange has ended.
  bool GoOn(Group& group) {
    while (true) {
      if (group.outcome.has_value()) {
        const float mean = static_cast<float>(groups_.size() - 1) / 2;
        const bool is_right = group.answer[0] == -static_cast<float>(group.turn.exchange.sequence) * mean;
        if (!group.outcome->ok()) return Fail(*group.outcome);
        if (!is_right) return Fail(absl::DataLossError("a round was not of all groups"));
        if (++group.block == shard_->blocks()) return true;
        group.outcome.reset();
      }
      const Range range = shard_->BlockRange(group.block);
      group.turn.exchange.first = range.begin;
      group.turn.values = absl::MakeConstSpan(group.values).subspan(0, range.size());
      group.turn.answer = absl::MakeSpan(group.answer).subspan(0, range.size());
      std::optional<absl::Status> status = shard_->Begin(group.turn);
      if (!status.has_value()) return false;  // Another thread may have the group already.
      group.outcome = std::move(status);
    }
  }

  bool Fail(absl::Status status) {
    shard_->StopWaiting();  // Otherwise the other groups would wait for this one.
    absl::MutexLock lock(&mutex_);
    end_ = std::move(status);
    return true;
  }

  Shard* const shard_;
  std::vector<Group> groups_;
  absl::Mutex mutex_;
  std::deque<Group*> ready_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

void BenchmarkRound(benchmark::State& state) {
  const auto groups = static_cast<uint32_t>(state.range(0));
  const std::unique_ptr<Shard> shard = MakeShard(groups);
  Groups all(shard.get(), groups);
  uint64_t round = 0;
  for (auto _ : state) {
    const absl::Status end = all.ExchangeAll(++round);
    if (!end.ok()) state.SkipWithError(end.ToString().c_str());
  }
  // The result of interest is CPU time per item.
  state.SetItemsProcessed(static_cast<int64_t>(round * groups));
}
BENCHMARK(BenchmarkRound)->Arg(8)->Arg(64)->Arg(256)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hooke

BENCHMARK_MAIN();
