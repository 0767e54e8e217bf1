#include "server/metrics/shard_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

void AddExchanges(const ExchangeCounts& counts, const MetricLabels& job, MetricFamilies& families) {
  families.Counter("hooke_shard_received_bytes_total", "Values that groups have sent to this shard, as sent.",
                   static_cast<double>(counts.received_bytes), job);
  families.Counter("hooke_shard_sent_bytes_total", "Values that this shard has answered with, as sent.",
                   static_cast<double>(counts.sent_bytes), job);
  families.Histogram(
      "hooke_shard_answer_seconds",
      "Time from the arrival of a message with values until its answer is ready, with waits for other groups.",
      {kAnswerSecondsBounds, counts.answers, absl::ToDoubleSeconds(counts.answer_time)}, job);
  families.Counter("hooke_shard_refused_messages_total", "Messages with values that ended with an error.",
                   static_cast<double>(counts.refused), job);
  families.Counter("hooke_shard_block_rounds_total", "Blocks that were changed by a round of several groups.",
                   static_cast<double>(counts.rounds), job);
  families.Histogram("hooke_shard_staleness_updates",
                     "Updates of a block between a group's receipt of it and the group's next change of it.",
                     {kStalenessBounds, counts.staleness, static_cast<double>(counts.staleness_updates)}, job);
}

}  // namespace

void AddShardMetrics(const std::vector<ShardFigures>& shards, const ShardMetricLimits& limits,
                     MetricFamilies& families) {
  const size_t shown = std::min(shards.size(), limits.shards_max);
  size_t groups_left = limits.groups_max;
  for (size_t i = 0; i < shown; ++i) {
    const ShardFigures& shard = shards[i];
    const MetricLabels job = {{"job", shard.job_id}};
    families.Gauge("hooke_shard_memory_bytes", "Memory that the shard takes.", static_cast<double>(shard.memory_bytes),
                   job);
    families.Counter("hooke_shard_updates_total", "Changes of the shard that a snapshot must store, of all blocks.",
                     static_cast<double>(shard.updates), job);
    AddExchanges(shard.exchanges, job, families);
    if (shard.snapshot_age.has_value()) {
      families.Gauge("hooke_shard_snapshot_age_seconds",
                     "Time since the shard was the same as its newest snapshot: what a crash would cost.",
                     absl::ToDoubleSeconds(*shard.snapshot_age), job);
    }
    if (shard.snapshot_took.has_value()) {
      families.Gauge("hooke_shard_snapshot_duration_seconds", "Time that the shard's last snapshot took.",
                     absl::ToDoubleSeconds(*shard.snapshot_took), job);
    }
    for (size_t group = 0; group < shard.exchanges.idle.size(); ++group) {
      if (!shard.exchanges.idle[group].has_value() || groups_left == 0) continue;
      --groups_left;
      families.Gauge("hooke_shard_group_idle_seconds", "Time since the shard has answered the group last.",
                     absl::ToDoubleSeconds(*shard.exchanges.idle[group]),
                     {{"job", shard.job_id}, {"group", absl::StrCat(group)}});
    }
  }
  families.Gauge("hooke_server_shards_left_out", "Shards that this page does not list, because there are too many.",
                 static_cast<double>(shards.size() - shown));
}

}  // namespace hooke
