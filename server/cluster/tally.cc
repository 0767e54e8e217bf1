#include "server/cluster/tally.h"

#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/scheduling/pace.h"
#include "wire/utc_time.h"

namespace hooke {

WaitingGroup WaitingGroupOf(const known::Job& job, uint32_t group) {
  const v1::GroupKind kind = KindOf(job.record.spec, group);
  WaitingGroup waits = {job.record.job_id, group, kind.ranks(), kind.site()};
  waits.command = HasCommand(job.record.spec);
  waits.owner = job.record.spec.owner();
  waits.gpus_per_rank = kind.gpus_per_rank();
  waits.unwanted = job.live[group].unwanted;
  return waits;
}

known::Tally MakeTally(const known::Job& job) {
  known::Tally tally;
  tally.fresh = true;
  tally.spec_bytes = job.record.spec.ByteSizeLong();
  for (const v1::GroupKind& kind : KindsOf(job.record.spec)) tally.has_limits = tally.has_limits || HasLimits(kind);
  for (const GroupRecord& group : job.record.groups) {
    if (IsPlaced(group.state)) {
      for (const GroupPart& part : group.parts) tally.placed_slots += part.ranks;
    }
    if (group.state != v1::GROUP_STATE_WAITING || HasEnded(job.record.state)) continue;
    tally.waiting.push_back(WaitingGroupOf(job, group.group));
    tally.waiting_slots += tally.waiting.back().ranks;
  }
  return tally;
}

const known::Tally& TallyOf(known::Job& job) {
  if (!job.tally.fresh) job.tally = MakeTally(job);
  return job.tally;
}

std::optional<absl::Duration> EndsAt(const known::Job& job, const GroupKey& key) {
  if (HasEnded(job.record.state) || key.group >= job.record.groups.size()) return std::nullopt;
  const GroupRecord& group = job.record.groups[key.group];
  const known::LiveGroup& live = job.live[key.group];
  const bool steady = group.state == v1::GROUP_STATE_RUNNING && group.task == v1::GroupStart::TRAIN &&
                      group.incarnation == key.incarnation && live.first_work.has_value() && live.silences.empty() &&
                      live.leaves.empty();
  if (!steady) return std::nullopt;
  const std::optional<absl::Duration> left = TimeLeft(
      {live.first_work_step, live.progress.step(), live.progress.steps_total(), live.last_work - *live.first_work});
  if (!left.has_value()) return std::nullopt;
  return live.last_work + *left;
}

FreeWorker WholeWorker(const known::Worker& worker) {
  FreeWorker whole = {worker.name,    worker.site, worker.slots, worker.slots, worker.allows_commands,
                      worker.address, worker.mpi};
  whole.only_job = worker.only_job;
  whole.gpus = worker.gpus;
  whole.version = worker.version;
  return whole;
}

std::string AvoidedText(const known::Worker& worker, const AvoidOptions& options, Instant now) {
  const std::optional<Avoidance> avoidance = Avoid(worker.deaths, now.steady, options);
  if (!avoidance.has_value()) return "";
  return absl::StrCat("until ", UtcText(now.wall + (avoidance->until - now.steady)), ", because ", avoidance->reason);
}

}  // namespace hooke
