#include "server/heartbeat/exchange_window.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hooke {
namespace {

// Returns whether `now` goes on from `before`, and is not of a new shard of the same job.
bool GoesOn(const ExchangeCounts& before, const ExchangeCounts& now) {
  return now.received_bytes >= before.received_bytes && now.sent_bytes >= before.sent_bytes &&
         std::equal(before.answers.begin(), before.answers.end(), now.answers.begin(), now.answers.end(),
                    [](uint64_t then, uint64_t later) { return later >= then; });
}

}  // namespace

double AnswerQuantile(absl::Span<const uint64_t> answers, double q) {
  const uint64_t all = std::accumulate(answers.begin(), answers.end(), uint64_t{0});
  if (all == 0) return 0;
  const double wanted = q * static_cast<double>(all);
  double below = 0;
  double lower = 0;
  for (size_t i = 0; i < kAnswerSecondsBounds.size(); ++i) {
    const double count = static_cast<double>(answers[i]);
    const double upper = kAnswerSecondsBounds[i];
    if (count > 0 && below + count >= wanted) return lower + (upper - lower) * (wanted - below) / count;
    below += count;
    lower = upper;
  }
  return lower;
}

v1::ExchangeFigures ExchangeWindow::Add(absl::Time now, const ParameterFigures& figures) {
  const bool first = seen_.empty();
  Totals totals = first ? Totals{now, std::vector<uint64_t>(kAnswerSecondsBounds.size() + 1)} : seen_.back();
  totals.at = now;
  std::map<std::string, ExchangeCounts> present;
  for (const ShardFigures& shard : figures.shards) {
    const ExchangeCounts& counts = present[shard.job_id] = shard.exchanges;
    if (first) continue;
    const auto last = last_.find(shard.job_id);
    const bool goes_on = last != last_.end() && GoesOn(last->second, counts);
    for (size_t i = 0; i < totals.answers.size(); ++i) {
      totals.answers[i] += counts.answers[i] - (goes_on ? last->second.answers[i] : 0);
    }
    totals.received_bytes += counts.received_bytes - (goes_on ? last->second.received_bytes : 0);
    totals.sent_bytes += counts.sent_bytes - (goes_on ? last->second.sent_bytes : 0);
  }
  last_ = std::move(present);
  seen_.push_back(std::move(totals));
  while (seen_.size() > 2 && seen_[1].at <= now - window_) seen_.pop_front();
  const Totals& then = seen_.front();
  const Totals& latest = seen_.back();
  v1::ExchangeFigures result;
  const double seconds = absl::ToDoubleSeconds(now - then.at);
  if (seconds <= 0) return result;
  std::vector<uint64_t> answers(latest.answers.size());
  for (size_t i = 0; i < answers.size(); ++i) answers[i] = latest.answers[i] - then.answers[i];
  const uint64_t messages = std::accumulate(answers.begin(), answers.end(), uint64_t{0});
  result.set_messages_per_second(static_cast<double>(messages) / seconds);
  result.set_received_bytes_per_second(static_cast<double>(latest.received_bytes - then.received_bytes) / seconds);
  result.set_sent_bytes_per_second(static_cast<double>(latest.sent_bytes - then.sent_bytes) / seconds);
  result.set_median_ms(1000 * AnswerQuantile(answers, 0.5));
  result.set_p99_ms(1000 * AnswerQuantile(answers, 0.99));
  return result;
}

double OldestSnapshotSeconds(const ParameterFigures& figures) {
  absl::Duration oldest = absl::ZeroDuration();
  for (const ShardFigures& shard : figures.shards) oldest = std::max(oldest, shard.snapshot_age.value_or(oldest));
  return absl::ToDoubleSeconds(oldest);
}

}  // namespace hooke
