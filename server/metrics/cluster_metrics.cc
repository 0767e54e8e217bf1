#include "server/metrics/cluster_metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "job/state_word.h"

namespace hooke {
namespace {

void AddStates(const ClusterFigures& cluster, MetricFamilies& families) {
  for (const auto& [state, jobs] : cluster.jobs) {
    families.Gauge("hooke_jobs", "Jobs that the coordinator keeps, by state.", static_cast<double>(jobs),
                   {{"state", JobStateText(state)}});
  }
  for (const auto& [state, groups] : cluster.groups) {
    families.Gauge("hooke_groups", "Groups of jobs that have not ended, by state.", static_cast<double>(groups),
                   {{"state", GroupStateText(state)}});
  }
  constexpr char kWorkers[] = "Workers, by whether the coordinator hears them.";
  families.Gauge("hooke_workers", kWorkers, static_cast<double>(cluster.workers_alive), {{"state", "alive"}});
  families.Gauge("hooke_workers", kWorkers, static_cast<double>(cluster.workers_silent), {{"state", "silent"}});
  constexpr char kSlots[] = "Slots of live workers.";
  families.Gauge("hooke_slots", kSlots, static_cast<double>(cluster.slots_used), {{"state", "used"}});
  families.Gauge("hooke_slots", kSlots, static_cast<double>(cluster.slots_free), {{"state", "free"}});
  constexpr char kLeftOut[] = "Things that this page does not list, because there are too many.";
  families.Gauge("hooke_cluster_left_out", kLeftOut, static_cast<double>(cluster.jobs_left_out), {{"kind", "job"}});
  families.Gauge("hooke_cluster_left_out", kLeftOut, static_cast<double>(cluster.groups_left_out), {{"kind", "group"}});
  families.Gauge("hooke_cluster_left_out", kLeftOut, static_cast<double>(cluster.workers_left_out),
                 {{"kind", "worker"}});
}

void AddNodes(const ClusterFigures& cluster, MetricFamilies& families) {
  for (const WorkerFigures& worker : cluster.workers) {
    const MetricLabels labels = {{"worker", worker.name}, {"site", worker.site}};
    families.Gauge("hooke_worker_alive", "1 if the coordinator hears the worker, otherwise 0.", worker.alive ? 1 : 0,
                   labels);
    families.Gauge("hooke_worker_unheard_seconds", "Time since the coordinator has heard the worker last.",
                   absl::ToDoubleSeconds(worker.unheard), labels);
    families.Gauge("hooke_worker_slots", "Slots of the worker.", worker.slots, labels);
    families.Gauge("hooke_worker_slots_used", "Slots of the worker that groups take.", worker.slots_used, labels);
  }
  for (const ServerFigures& server : cluster.servers) {
    // Two servers may claim one address, so the identity is a label, too.
    const MetricLabels labels = {{"server", server.address}, {"id", server.id}};
    families.Gauge("hooke_server_alive", "1 if the coordinator hears the server, otherwise 0.", server.alive ? 1 : 0,
                   labels);
    families.Gauge("hooke_server_usable", "1 if the coordinator has reached the server at its address, otherwise 0.",
                   server.usable ? 1 : 0, labels);
    families.Gauge("hooke_server_unheard_seconds", "Time since the coordinator has heard the server last.",
                   absl::ToDoubleSeconds(server.unheard), labels);
  }
}

void AddProgress(const v1::RankProgress& progress, const MetricLabels& labels, MetricFamilies& families) {
  families.Gauge("hooke_group_step", "Steps that the group has done.", static_cast<double>(progress.step()), labels);
  if (progress.steps_total() > 0) {
    families.Gauge("hooke_group_planned_steps", "Steps after which the group has finished.",
                   static_cast<double>(progress.steps_total()), labels);
  }
  families.Gauge("hooke_group_epoch", "Passes over the data by all groups together, as the group counts them.",
                 progress.epoch(), labels);
  // Before the first step the loss is NaN, which says nothing. A later NaN is reported, because training has then gone
  // wrong.
  if (progress.step() > 0) {
    families.Gauge("hooke_group_loss", "Mean training loss of the group's last steps.", progress.loss(), labels);
  }
  if (progress.has_center_distance()) {
    families.Gauge("hooke_group_center_distance_ratio",
                   "How far the group was from the center at an exchange, divided by the center's length.",
                   progress.center_distance(), labels);
  }
  if (progress.has_staleness()) {
    families.Gauge("hooke_group_staleness_changes",
                   "Changes that other groups made to the center between two exchanges of the group, on average.",
                   progress.staleness(), labels);
  }
  families.Gauge("hooke_group_samples_per_second", "Samples per second of the whole group, over about a second.",
                 progress.samples_per_s(), labels);
  constexpr char kTime[] = "Time that rank 0 has spent, since the group's last start, in each activity.";
  const auto time = [&](const char* activity, double seconds) {
    MetricLabels with = labels;
    with.emplace_back("activity", activity);
    families.Counter("hooke_group_activity_seconds_total", kTime, seconds, with);
  };
  time("compute", progress.compute_seconds());
  time("collective", progress.collective_seconds());
  time("exchange", progress.exchange_seconds());
  families.Counter("hooke_group_exchanges_total", "Exchanges that the group has begun since its last start.",
                   static_cast<double>(progress.exchanges()), labels);
  families.Counter("hooke_group_exchange_failures_total", "Exchanges in which some server did not answer some rank.",
                   static_cast<double>(progress.exchange_failures()), labels);
}

void AddGroups(const JobFigures& job, MetricFamilies& families) {
  uint64_t furthest = 0;
  for (const GroupFigures& group : job.groups) {
    if (group.placed && group.progress.has_value()) furthest = std::max(furthest, group.progress->step());
  }
  for (const GroupFigures& group : job.groups) {
    const MetricLabels labels = {{"job", job.job_id}, {"group", absl::StrCat(group.group)}};
    families.Gauge("hooke_group_placed", "1 while the group starts or runs on workers, otherwise 0.",
                   group.placed ? 1 : 0, labels);
    families.Counter("hooke_group_starts_total", "Number of the group's last start.", group.starts, labels);
    families.Gauge("hooke_group_silent_peers", "Ranks, workers and servers that do not answer the group.",
                   group.silences, labels);
    families.Gauge("hooke_group_absent_servers",
                   "Servers that exchanges of the group skip, because they do not answer.", group.absent_servers,
                   labels);
    if (!group.progress.has_value()) continue;
    AddProgress(*group.progress, labels, families);
    if (!group.placed) continue;
    families.Gauge("hooke_group_steps_behind", "Steps by which the group is behind the job's furthest running group.",
                   static_cast<double>(furthest - group.progress->step()), labels);
  }
}

void AddJobs(const ClusterFigures& cluster, MetricFamilies& families) {
  for (const JobFigures& job : cluster.listed_jobs) {
    const MetricLabels labels = {{"job", job.job_id}};
    families.Gauge("hooke_job_state", "1, with the job's state as a label.", 1,
                   {{"job", job.job_id}, {"state", JobStateText(job.state)}});
    families.Gauge("hooke_job_step", "Steps that the furthest of the job's groups has done.",
                   static_cast<double>(job.step), labels);
    families.Gauge("hooke_job_queued_seconds", "Time that the job has waited since its submission, 0 once it runs.",
                   absl::ToDoubleSeconds(job.queued), labels);
    families.Counter("hooke_job_restarts_total",
                     "Starts of the job's groups, without the first of each in a generation.",
                     static_cast<double>(job.restarts), labels);
    if (job.center.has_value()) {
      families.Gauge("hooke_job_center_step", "Step at which the center was evaluated last.",
                     static_cast<double>(job.center->step()), labels);
      families.Gauge("hooke_job_center_loss", "Loss of the center over the test data, at its last evaluation.",
                     job.center->loss(), labels);
      if (!std::isnan(job.center->accuracy())) {
        families.Gauge("hooke_job_center_accuracy_ratio",
                       "Fraction of the test samples that the center classified correctly, at its last evaluation.",
                       job.center->accuracy(), labels);
      }
    }
    AddGroups(job, families);
  }
}

}  // namespace

void AddClusterMetrics(const CoordinatorFigures& figures, MetricFamilies& families) {
  AddStates(figures.cluster, families);
  AddNodes(figures.cluster, families);
  AddJobs(figures.cluster, families);
  families.Counter("hooke_coordinator_store_failures_total", "Attempts to store jobs that failed.",
                   static_cast<double>(figures.store_failures));
  families.Gauge("hooke_coordinator_store_works", "1 if the last attempt to store jobs succeeded, otherwise 0.",
                 figures.store_works ? 1 : 0);
}

}  // namespace hooke
