#ifndef HOOKE_WORKER_API_RANK_JOB_RANKS_H_
#define HOOKE_WORKER_API_RANK_JOB_RANKS_H_

// For tests of RankJob: a group whose ranks are threads.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "proto/worker.pb.h"
#include "worker/api/rank_job.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/event_sink.h"
#include "worker/report/reporter.h"

namespace hooke {

// Runs `body` on each rank of a new group of the job. Returns when all ranks have returned. `sink` makes the sink of a
// rank's reporter; if it is empty, there is none.
inline void RunRankJobs(const v1::GroupStart& start, int ranks, const ServerDialer& dial,
                        const std::function<void(RankJob&, Reporter&, int rank)>& body,
                        const std::function<std::unique_ptr<EventSink>(int rank)>& sink = {}) {
  GroupOptions options;
  options.deadline = absl::Seconds(20);
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks, options);
  RunRanks(ranks, [&](int rank) {
    ReporterOptions reporting;
    if (sink) reporting.sinks.push_back(sink(rank));
    Reporter reporter(std::move(reporting));
    RankJob::Dependencies deps;
    deps.group = groups[rank].get();
    deps.reporter = &reporter;
    deps.dial = dial;
    RankJob job(start, deps);
    body(job, reporter, rank);
  });
}

}  // namespace hooke

#endif  // HOOKE_WORKER_API_RANK_JOB_RANKS_H_
