#ifndef HOOKE_SERVER_CLUSTER_CLUSTER_VIEW_H_
#define HOOKE_SERVER_CLUSTER_CLUSTER_VIEW_H_

// Jobs and workers as users see them. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/job_row.h"
#include "server/cluster/job_table.h"
#include "server/cluster/known.h"
#include "server/cluster/server_table.h"
#include "server/cluster/worker_table.h"
#include "server/records/records.h"
#include "server/scheduling/avoidance.h"

namespace hooke {

v1::JobStatus StatusOf(const known::Job& job, Instant now);
JobRow RowOf(const known::Job& job);
// Returns what took how long from the job's submission to its groups' first steps.
v1::ReadStartsResponse StartsOf(const JobRecord& job);

struct JobList {
  std::vector<v1::JobStatus> jobs;  // Newest first, without notices.
  size_t left_out = 0;              // Number of older jobs that did not fit.
};
// Returns as many of the newest jobs as fit into `bytes_max`.
JobList ListJobs(const JobTable& jobs, size_t bytes_max, Instant now);
// Returns the rows of the newest `rows_max` jobs that have changed since `version`, which comes from an earlier call
// or is 0. The whole list comes if a job was forgotten since then, or if `version` is none of this table's.
JobRows RowsSince(const JobTable& jobs, uint64_t version, size_t rows_max);

// `workers` has the worker; `avoid` says when it is avoided.
v1::NodeStatus StatusOf(const known::Worker& worker, const WorkerTable& workers, const AvoidOptions& avoid,
                        Instant now);

ClusterFigures FiguresOf(const JobTable& jobs, const WorkerTable& workers, const ServerTable& servers,
                         const FigureLimits& limits, Instant now);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_CLUSTER_VIEW_H_
