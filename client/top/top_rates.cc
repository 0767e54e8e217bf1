#include "client/top/top_rates.h"

#include <cmath>

namespace hooke {
namespace {

struct Counts {
  uint32_t incarnation = 0;
  uint64_t steps = 0;
  uint64_t exchanges = 0;
};
using CountsByGroup = std::map<std::pair<std::string, uint32_t>, Counts>;

bool Trains(const v1::GroupStatus& group) {
  return group.task() != v1::GroupStart::EVALUATE && group.state() == v1::GROUP_STATE_RUNNING && group.has_progress();
}

CountsByGroup CountsOf(const ClusterLook& look) {
  CountsByGroup counts;
  for (const v1::JobStatus& job : look.jobs.jobs()) {
    for (const v1::GroupStatus& group : job.groups()) {
      if (!Trains(group)) continue;
      counts[{job.job_id(), group.group()}] = {group.incarnation(), group.progress().step(),
                                               group.progress().exchanges()};
    }
  }
  return counts;
}

void AddSamples(const v1::GroupStatus& group, std::map<std::string, double>& samples) {
  const double all = group.progress().samples_per_s();
  if (!std::isfinite(all)) return;
  double ranks = 0;
  for (const v1::GroupPart& part : group.parts()) ranks += part.ranks();
  for (const v1::GroupPart& part : group.parts()) {
    if (ranks > 0) samples[part.worker()] += all * part.ranks() / ranks;
  }
  if (group.parts().empty()) samples[group.worker()] += all;
}

}  // namespace

ClusterRates RatesOf(const std::optional<ClusterLook>& before, const ClusterLook& now) {
  ClusterRates rates;
  for (const v1::JobStatus& job : now.jobs.jobs()) {
    for (const v1::GroupStatus& group : job.groups()) {
      if (Trains(group)) AddSamples(group, rates.worker_samples);
    }
  }
  const double seconds = before.has_value() ? absl::ToDoubleSeconds(now.at - before->at) : 0;
  if (seconds <= 0) return rates;
  const CountsByGroup old = CountsOf(*before);
  for (const auto& [key, counts] : CountsOf(now)) {
    const auto found = old.find(key);
    if (found == old.end() || found->second.incarnation != counts.incarnation) continue;
    if (counts.steps < found->second.steps || counts.exchanges < found->second.exchanges) continue;
    rates.groups[key] = {static_cast<double>(counts.steps - found->second.steps) / seconds,
                         static_cast<double>(counts.exchanges - found->second.exchanges) / seconds};
  }
  for (const v1::JobStatus& job : now.jobs.jobs()) {
    for (const v1::GroupStatus& group : job.groups()) {
      const auto found = rates.groups.find({job.job_id(), group.group()});
      if (found == rates.groups.end() || group.task() == v1::GroupStart::EVALUATE) continue;
      for (const std::string& server : job.servers()) rates.server_exchanges[server] += found->second.exchanges_per_s;
    }
  }
  return rates;
}

}  // namespace hooke
