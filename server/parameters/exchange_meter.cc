#include "server/parameters/exchange_meter.h"

#include <algorithm>
#include <utility>

namespace hooke {
namespace {

// Returns the bucket of `value`: the first one whose upper bound is not below it.
template <size_t kBounds>
size_t BucketOf(const std::array<double, kBounds>& bounds, double value) {
  return std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
}

}  // namespace

ExchangeMeter::ExchangeMeter(uint32_t groups, std::shared_ptr<WaitClock> clock)
    : clock_(std::move(clock)), groups_(groups), last_(std::make_unique<std::atomic<int64_t>[]>(groups)) {}

absl::Time ExchangeMeter::Answered(const Message& message) {
  const absl::Time now = Now();
  const absl::Duration took = now - message.arrived;
  Add(answers_[BucketOf(kAnswerSecondsBounds, absl::ToDoubleSeconds(took))], 1);
  Add(answer_nanoseconds_, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(took))));
  Add(received_bytes_, message.received_bytes);
  Add(sent_bytes_, message.sent_bytes);
  last_[message.group].store(absl::ToUnixNanos(now), std::memory_order_relaxed);
  return now;
}

void ExchangeMeter::AppliedAlone(uint64_t staleness) {
  Add(staleness_[BucketOf(kStalenessBounds, static_cast<double>(staleness))], 1);
  Add(staleness_updates_, staleness);
}

void ExchangeMeter::AddCounts(const ExchangeCounts& counts) {
  Add(refused_, counts.refused);
  Add(received_bytes_, counts.received_bytes);
  Add(sent_bytes_, counts.sent_bytes);
  for (size_t i = 0; i < answers_.size(); ++i) Add(answers_[i], counts.answers[i]);
  Add(answer_nanoseconds_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(counts.answer_time)));
  for (size_t i = 0; i < staleness_.size(); ++i) Add(staleness_[i], counts.staleness[i]);
  Add(staleness_updates_, counts.staleness_updates);
  Add(rounds_, counts.rounds);
}

ExchangeCounts ExchangeMeter::Read() const {
  ExchangeCounts counts;
  counts.refused = refused_;
  counts.received_bytes = received_bytes_;
  counts.sent_bytes = sent_bytes_;
  counts.answers = {answers_.begin(), answers_.end()};
  counts.answer_time = absl::Nanoseconds(answer_nanoseconds_.load());
  counts.staleness = {staleness_.begin(), staleness_.end()};
  counts.staleness_updates = staleness_updates_;
  counts.rounds = rounds_;
  const absl::Time now = Now();
  for (uint32_t group = 0; group < groups_; ++group) {
    const int64_t last = last_[group].load(std::memory_order_relaxed);
    counts.idle.push_back(last == 0 ? std::nullopt : std::make_optional(now - absl::FromUnixNanos(last)));
  }
  return counts;
}

}  // namespace hooke
