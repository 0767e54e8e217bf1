#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "job/job_state.h"
#include "server/cluster/cluster_view.h"
#include "server/cluster/next_generation.h"

namespace hooke {
namespace {

// Each state of an enum with a value of 0 that means "unspecified".
template <typename State>
std::map<State, uint64_t> NoneOfEach(State last) {
  std::map<State, uint64_t> counts;
  for (int state = 1; state <= last; ++state) counts[static_cast<State>(state)] = 0;
  return counts;
}

// Returns nullopt for a job that ended too long ago. Lists at most `groups_left` groups, and takes them from it.
std::optional<JobFigures> JobFiguresOf(const known::Job& job, const FigureLimits& limits, size_t& groups_left,
                                       Instant now) {
  const JobRecord& record = job.record;
  JobFigures figures;
  figures.job_id = record.job_id;
  figures.state = record.state;
  if (record.state == v1::JOB_STATE_QUEUED) {
    figures.queued = std::max(absl::ZeroDuration(), now.wall - absl::FromUnixMillis(record.submitted_unix_ms));
  }
  if (HasEnded(record.state) && now.steady - job.ended_at > limits.keep_ended) return std::nullopt;
  figures.center = record.center;
  figures.restarts = job.earlier_restarts + RestartsOf(record);
  for (const GroupRecord& group : record.groups) {
    if (group.task == v1::GroupStart::EVALUATE) continue;
    const known::LiveGroup& live = job.live[group.group];
    figures.step = std::max({figures.step, live.furthest_step, group.best_step});
    if (groups_left == 0) continue;
    --groups_left;
    GroupFigures& shown = figures.groups.emplace_back();
    shown.group = group.group;
    shown.placed = IsPlaced(group.state);
    shown.starts = group.incarnation;
    shown.silences = static_cast<uint32_t>(live.silences.size());
    if (!live.has_progress) continue;
    std::set<std::string> absent;
    for (const auto& [rank, servers] : live.absent) {
      for (const v1::AbsentServer& server : servers) absent.insert(server.address());
    }
    shown.absent_servers = static_cast<uint32_t>(absent.size());
    shown.progress = live.progress;
    shown.progress->clear_metrics();
    shown.progress->clear_absent_servers();
  }
  return figures;
}

// Lists jobs in the order of how much people want to see them, so that the limits leave out the others.
void ListJobFigures(const JobTable& all, const FigureLimits& limits, Instant now, ClusterFigures& figures) {
  std::array<std::vector<const known::Job*>, 3> by_interest;
  for (const auto& [number, job] : all) {
    const v1::JobState state = job.record.state;
    by_interest[HasEnded(state) ? 2 : state == v1::JOB_STATE_QUEUED ? 1 : 0].push_back(&job);
  }
  size_t groups_left = limits.groups_max;
  for (const std::vector<const known::Job*>& jobs : by_interest) {
    for (const known::Job* job : jobs) {
      std::optional<JobFigures> one = JobFiguresOf(*job, limits, groups_left, now);
      if (!one.has_value()) continue;
      const auto trains = [](const GroupRecord& group) { return group.task != v1::GroupStart::EVALUATE; };
      const auto& groups = job->record.groups;
      figures.groups_left_out += std::count_if(groups.begin(), groups.end(), trains) - one->groups.size();
      if (figures.listed_jobs.size() < limits.jobs_max) {
        figures.listed_jobs.push_back(*std::move(one));
      } else {
        ++figures.jobs_left_out;
        figures.groups_left_out += one->groups.size();
        groups_left += one->groups.size();
      }
    }
  }
}

}  // namespace

ClusterFigures FiguresOf(const JobTable& jobs, const WorkerTable& workers, const ServerTable& servers,
                         const FigureLimits& limits, Instant now) {
  ClusterFigures figures;
  figures.jobs = NoneOfEach(v1::JOB_STATE_HELD);
  figures.groups = NoneOfEach(v1::GROUP_STATE_HELD);
  for (const auto& [number, job] : jobs) {
    ++figures.jobs[job.record.state];
    if (HasEnded(job.record.state)) continue;
    for (const GroupRecord& group : job.record.groups) {
      if (group.task != v1::GroupStart::EVALUATE) ++figures.groups[group.state];
    }
  }
  ListJobFigures(jobs, limits, now, figures);
  for (const auto& [name, worker] : workers) {
    WorkerFigures one;
    one.name = name;
    one.site = worker.site;
    one.slots = worker.slots;
    one.slots_used = static_cast<uint32_t>(worker.slots_used());
    one.alive = workers.Answers(worker, now);
    one.unheard = now.steady - worker.last_heard.steady;
    ++(one.alive ? figures.workers_alive : figures.workers_silent);
    if (one.alive) {
      figures.slots_used += one.slots_used;
      figures.slots_free += one.slots - std::min(one.slots, one.slots_used);
    }
    if (figures.workers.size() < limits.workers_max) {
      figures.workers.push_back(std::move(one));
    } else {
      ++figures.workers_left_out;
    }
  }
  figures.servers = servers.Figures(now);
  return figures;
}

}  // namespace hooke
