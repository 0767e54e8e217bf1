#ifndef HOOKE_SERVER_METRICS_CLUSTER_METRICS_H_
#define HOOKE_SERVER_METRICS_CLUSTER_METRICS_H_

// Metrics of a cluster, as its coordinator sees it. Pure.

#include "server/cluster/cluster_figures.h"
#include "wire/metrics/families.h"

namespace hooke {

void AddClusterMetrics(const CoordinatorFigures& figures, MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_SERVER_METRICS_CLUSTER_METRICS_H_
