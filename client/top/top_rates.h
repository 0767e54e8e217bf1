#ifndef HOOKE_CLIENT_TOP_TOP_RATES_H_
#define HOOKE_CLIENT_TOP_TOP_RATES_H_

// Rates of a cluster, from two looks at it. Pure.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// A look at the whole cluster.
struct ClusterLook {
  absl::Time at;  // By this machine's clock.
  v1::ListJobsResponse jobs;
  v1::ListNodesResponse nodes;
};

struct GroupRates {
  double steps_per_s = 0;
  double exchanges_per_s = 0;
};

// Rates per second, computed from two looks at the cluster. A group has rates if it reported in both looks without
// being started again between them.
struct ClusterRates {
  std::map<std::pair<std::string, uint32_t>, GroupRates> groups;  // By job id and group; without evaluations.
  std::map<std::string, double> server_exchanges;                 // By address: exchanges with the server per second.
  std::map<std::string, double> worker_samples;                   // By name: samples per second of its ranks.
};

// `before` is a look at the same cluster a few seconds earlier; without it only samples are known, which ranks report.
// A group that exchanges does so with each server of its job. The samples of a group on several workers are split among
// the workers in proportion to their ranks.
ClusterRates RatesOf(const std::optional<ClusterLook>& before, const ClusterLook& now);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TOP_TOP_RATES_H_
