#include "server/cluster/cluster_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/done_share.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/shortened.h"
#include "server/cluster/start_times.h"
#include "server/cluster/tally.h"

namespace hooke {
namespace {

// Lists once each server that any rank of the group misses, with the earliest time of all ranks.
void ShowAbsent(const std::map<uint32_t, std::vector<v1::AbsentServer>>& of_ranks, v1::RankProgress& progress) {
  std::map<std::string, int64_t> since;
  for (const auto& [rank, servers] : of_ranks) {
    for (const v1::AbsentServer& server : servers) {
      int64_t& first = since.try_emplace(server.address(), server.since_unix_ms()).first->second;
      first = std::min(first, server.since_unix_ms());
    }
  }
  progress.clear_absent_servers();
  for (const auto& [address, unix_ms] : since) {
    v1::AbsentServer* server = progress.add_absent_servers();
    server->set_address(address);
    server->set_since_unix_ms(unix_ms);
  }
}

std::string WhatText(const v1::JobSpec& spec) {
  return absl::StrCat(TrainedText(spec), ", ", GroupsText(spec), ", ",
                      absl::AsciiStrToLower(v1::AveragingSpec::Rule_Name(spec.averaging().rule())));
}

// A started job of which all groups wait tells what the first of them waits for.
std::string ReasonOf(const JobRecord& job) {
  const bool started = job.state == v1::JOB_STATE_RUNNING || job.state == v1::JOB_STATE_EVALUATING;
  const auto is_placed = [](const GroupRecord& group) { return IsPlaced(group.state); };
  if (!started || std::any_of(job.groups.begin(), job.groups.end(), is_placed)) return job.reason;
  for (const GroupRecord& group : job.groups) {
    if (group.state != v1::GROUP_STATE_WAITING) continue;
    const bool evaluates = group.task == v1::GroupStart::EVALUATE;
    return absl::StrCat(evaluates ? "the evaluation waits: " : "no group runs: ", group.reason);
  }
  return job.reason;
}

v1::GroupPart Shown(const GroupPart& part) {
  v1::GroupPart shown;
  shown.set_worker(part.worker);
  shown.set_first_rank(part.first_rank);
  shown.set_ranks(part.ranks);
  return shown;
}

}  // namespace

v1::ReadStartsResponse StartsOf(const JobRecord& job) {
  v1::ReadStartsResponse response;
  const std::vector<v1::LifeSpan> submit = SubmitSpans(job.submitted_unix_ms * 1000, job.preparing_us, job.upload_us);
  *response.mutable_submit() = {submit.begin(), submit.end()};
  for (const GroupRecord& group : job.groups) {
    for (const PackedStart& start : group.starts) *response.add_starts() = start.Unpack();
  }
  return response;
}

JobList ListJobs(const JobTable& jobs, size_t bytes_max, Instant now) {
  JobList list;
  size_t bytes = 0;
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    v1::JobStatus job = StatusOf(it->second, now);
    job.clear_notices();
    bytes += job.ByteSizeLong();
    if (bytes > bytes_max) break;
    list.jobs.push_back(std::move(job));
  }
  list.left_out = jobs.size() - list.jobs.size();
  return list;
}

JobRows RowsSince(const JobTable& jobs, uint64_t version, size_t rows_max) {
  JobRows list;
  list.version = jobs.last_change();
  list.whole = version == 0 || version < jobs.forgot_at() || version > jobs.last_change();
  list.left_out = jobs.size() - std::min(rows_max, jobs.size());
  size_t seen = 0;
  for (auto it = jobs.rbegin(); it != jobs.rend() && seen < rows_max; ++it, ++seen) {
    if (list.whole || it->second.changes > version) list.rows.push_back(RowOf(it->second));
  }
  return list;
}

JobRow RowOf(const known::Job& job) {
  const JobRecord& record = job.record;
  JobRow row;
  row.job_id = record.job_id;
  row.state = record.state;
  row.reason = ReasonOf(record);
  row.submitted_unix_ms = record.submitted_unix_ms;
  row.first_step_unix_ms = record.first_step_unix_ms;
  row.ended_unix_ms = record.ended_unix_ms;
  row.what = WhatText(record.spec);
  row.owner = record.spec.owner();
  if (record.center.has_value()) row.accuracy = record.center->accuracy();
  if (record.state == v1::JOB_STATE_SUCCEEDED) row.done = 1;
  if (record.state == v1::JOB_STATE_SUCCEEDED || record.groups.empty()) return row;
  std::vector<GroupDone> groups;
  for (const GroupRecord& group : record.groups) {
    if (group.task == v1::GroupStart::EVALUATE) continue;
    const known::LiveGroup& live = job.live[group.group];
    groups.push_back({group.state, group.incarnation, live.has_progress ? &live.progress : nullptr});
  }
  row.done = DoneShare(groups, record.spec.groups().count());
  return row;
}

v1::JobStatus StatusOf(const known::Job& job, Instant now) {
  const JobRecord& record = job.record;
  v1::JobStatus status;
  status.set_job_id(record.job_id);
  status.set_name(record.spec.name());
  status.set_state(record.state);
  status.set_reason(ReasonOf(record));
  if (record.state == v1::JOB_STATE_QUEUED) status.set_queue_position(job.queue_position);
  status.set_generation(static_cast<uint32_t>(record.generations.earlier.size() + 1));
  status.set_submitted_unix_ms(record.submitted_unix_ms);
  status.set_started_unix_ms(record.started_unix_ms);
  status.set_first_step_unix_ms(record.first_step_unix_ms);
  status.set_ended_unix_ms(record.ended_unix_ms);
  for (const GroupRecord& group : record.groups) {
    const bool shows_evaluation = record.state == v1::JOB_STATE_EVALUATING || record.state == v1::JOB_STATE_HELD;
    if (group.task == v1::GroupStart::EVALUATE && !shows_evaluation) continue;
    const known::LiveGroup& live = job.live[group.group];
    v1::GroupStatus* shown = status.add_groups();
    shown->set_group(group.group);
    shown->set_state(group.state);
    shown->set_reason(group.reason);
    shown->set_incarnation(group.incarnation);
    shown->set_task(group.task);
    if (group.state != v1::GROUP_STATE_WAITING) {
      if (!group.parts.empty()) shown->set_worker(group.parts[0].worker);
      shown->set_site(group.site);
      if (group.parts.size() > 1) {
        for (const GroupPart& part : group.parts) *shown->add_parts() = Shown(part);
      }
    }
    if (live.has_progress) {
      *shown->mutable_progress() = live.progress;
      ShowAbsent(live.absent, *shown->mutable_progress());
    }
    for (const v1::Silence& silence : live.silences) *shown->add_silences() = silence;
    if (group.state == v1::GROUP_STATE_RUNNING) shown->set_slow(live.slow);
    *shown->mutable_last_lines() = {group.last_lines.begin(), group.last_lines.end()};
  }
  if (record.center.has_value()) *status.mutable_center() = *record.center;
  for (const JobServer& server : record.servers) status.add_servers(server.address);
  for (const v1::Notice& notice : job.notices) *status.add_notices() = notice;
  if (job.setback.has_value()) *status.mutable_setback() = *job.setback;
  status.set_now_unix_ms(absl::ToUnixMillis(now.wall));
  *status.mutable_spec() = record.spec;
  // These fields are large, and would fill a reply that lists many jobs. An environment may also contain passwords.
  status.mutable_spec()->mutable_collectives()->clear_tuning();
  if (status.spec().has_command()) {
    v1::CommandSpec& command = *status.mutable_spec()->mutable_command();
    command.clear_environment();
    for (auto& [site, spec] : *command.mutable_sites()) spec.clear_environment();
  }
  return status;
}

v1::NodeStatus StatusOf(const known::Worker& worker, const WorkerTable& workers, const AvoidOptions& avoid,
                        Instant now) {
  v1::NodeStatus node;
  node.set_name(worker.name);
  node.set_kind(v1::NodeStatus::WORKER);
  node.set_site(worker.site);
  node.set_slots(worker.slots);
  node.set_slots_used(static_cast<uint32_t>(worker.slots_used()));
  node.set_alive(workers.Answers(worker, now));
  node.set_last_heard_unix_ms(absl::ToUnixMillis(worker.last_heard.wall));
  node.set_version(worker.version);
  node.set_mpi(worker.mpi);
  *node.mutable_interfaces() = {worker.interfaces.begin(), worker.interfaces.end()};
  node.set_drain(worker.drain);
  node.set_avoided(AvoidedText(worker, avoid, now));
  node.set_only_job(Shortened(worker.only_job, 128));
  node.set_gpus(worker.gpus);
  for (const auto& [key, ranks] : worker.occupants) {
    v1::NodeGroup& group = *node.add_groups();
    group.set_job_id(key.job_id);
    group.set_group(key.group);
    group.set_ranks(ranks);
  }
  return node;
}

}  // namespace hooke
