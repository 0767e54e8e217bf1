// ClusterState: the starts of groups, and groups that run on several workers.
//
// A group on several workers starts in two phases. Each worker prepares its part and says that it is ready. When all
// parts are ready, the first part's worker, the lead, is told to start mpirun. mpirun wants its own daemon on each
// other node, and the lead asks for it by a RemoteStart. The coordinator passes the RemoteStart on to a worker only if
// that worker runs a part of the same incarnation. If a part ends badly, the group ends on all its workers.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"
#include "server/cluster/start_times.h"

namespace hooke {
namespace {

// After the bad end of a part, the group's end waits at most this long for another part. mpirun ends the other parts at
// once, and the end of one of them may tell more.
constexpr absl::Duration kAwaitOtherPart = absl::Milliseconds(1500);
constexpr int kArgumentsMax = 512;
constexpr size_t kArgumentBytesMax = 64 << 10;

bool IsTooLong(const v1::RemoteStart& remote) {
  size_t bytes = 0;
  for (const std::string& argument : remote.arguments()) bytes += argument.size();
  return remote.arguments_size() > kArgumentsMax || bytes > kArgumentBytesMax;
}

// Adds the start to those of which the coordinator keeps what took how long.
void NoteStart(known::Job& job, GroupRecord& group, const Placement& placement, Instant now) {
  const int64_t waits_since = std::exchange(job.live[group.group].waits_since_us, 0);
  if (group.task != v1::GroupStart::TRAIN) return;
  const bool first = group.incarnation == 1;
  AddStart({group.group, group.incarnation, placement.parts[0].worker, group.reason,
            first ? job.record.submitted_unix_ms * 1000 : waits_since, absl::ToUnixMicros(now.wall)},
           group.starts);
}

v1::StartGroupCommand StartMessage(const JobRecord& job, const GroupRecord& group) {
  v1::StartGroupCommand message;
  message.set_ranks(KindOf(job.spec, group.group).ranks());
  v1::GroupStart* start = message.mutable_group();
  start->set_job_id(job.job_id);
  *start->mutable_job() = job.spec;
  start->set_group(group.group);
  start->set_incarnation(group.incarnation);
  start->set_task(group.task);
  for (const JobServer& server : job.servers) start->add_servers(server.address);
  start->set_job_key(job.submission_id);
  const Generations& generations = job.generations;
  start->mutable_earlier()->Assign(generations.earlier.begin(), generations.earlier.end());
  start->set_first_step(generations.first_step);
  start->set_first_incarnation(generations.first_incarnation);
  start->set_is_new(group.is_new);
  if (group.parts.size() < 2) return message;
  for (const GroupPart& part : group.parts) {
    v1::GroupPart* sent = message.add_parts();
    sent->set_worker(part.worker);
    sent->set_first_rank(part.first_rank);
    sent->set_ranks(part.ranks);
    sent->set_address(part.address);
  }
  return message;
}

}  // namespace

void ClusterState::Start(Job& job, GroupRecord& group, const Placement& placement, Instant now) {
  FixServers(job, now);
  ++group.incarnation;
  NoteStart(job, group, placement, now);
  job.goes_on = false;
  group.evaluated = false;
  group.state = v1::GROUP_STATE_STARTING;
  group.reason = "starting";
  group.site = placement.site;
  group.parts.clear();
  uint32_t first_rank = 0;
  for (const PlacedPart& part : placement.parts) {
    Worker& worker = *workers_.Find(part.worker);
    group.parts.push_back({part.worker, first_rank, part.ranks, worker.address});
    worker.occupants[{job.record.job_id, group.group, group.incarnation}] = part.ranks;
    rooms_.Changed(worker.name);
    first_rank += part.ranks;
  }
  LiveGroup& live = job.live[group.group];
  live.cut_off.reset();
  live.progress.Clear();
  live.has_progress = false;
  live.absent.clear();
  live.silences.clear();
  live.leaves.clear();
  live.leaves_for.clear();
  live.made_room.clear();
  live.last_lines.clear();
  live.work = {};
  live.slow_windows = 0;
  live.slow.clear();
  live.lacks_server = false;
  live.first_work.reset();
  live.ready.clear();
  live.launched = false;
  live.ready_by =
      group.parts.size() > 1 ? now.steady + PartLimitsOf(job.record.spec.command()).ready : absl::InfiniteDuration();
  live.failed_on.clear();
  live.outcome_so_far.reset();
  ExpectParts(job, group);
  for (const JobServer& shard : job.record.servers) {
    const Server* server = servers_.Find(KeyOf(shard));
    if (server == nullptr || !server->silent) continue;
    AddSilence(job, group, absl::StrCat("server ", server->claim.address), server->last_heard);
  }
  v1::WorkerCommand command;
  *command.mutable_start() = StartMessage(job.record, group);
  for (size_t part = 0; part < group.parts.size(); ++part) {
    command.mutable_start()->set_part(static_cast<uint32_t>(part));
    // The start waits until its record is stored. Otherwise a restarted coordinator could give out the same incarnation
    // once more.
    effects_.Send(workers_.Find(group.parts[part].worker)->session, command, job.record.job_id);
  }
  effects_.Log(job.record.job_id,
               absl::StrCat("group ", group.group, group.task == v1::GroupStart::EVALUATE ? " (evaluation)" : "",
                            " starts on ", PlaceText(group), " at site ", group.site, ", start ", group.incarnation),
               now);
  Store(job);
  ApplyJobDecision(job, now);
}

void ClusterState::PartIsReady(Job& job, GroupRecord& group, const GroupPart& part, Instant now) {
  LiveGroup& live = job.live[group.group];
  live.ready.insert(part.worker);
  if (live.launched || live.ready.size() < group.parts.size()) return;
  live.launched = true;
  const Worker* lead = workers_.Find(group.parts[0].worker);
  if (lead == nullptr || lead->session == 0) {
    return EndGroup(
        job, group,
        {false, absl::StatusCode::kUnavailable,
         absl::StrCat(workers_.GoneText(group), "it went away while the group started"), live.furthest_step},
        now);
  }
  v1::WorkerCommand command;
  *command.mutable_launch()->mutable_group() = IdOf({job.record.job_id, group.group, group.incarnation});
  effects_.Send(lead->session, std::move(command));
  effects_.Log(job.record.job_id, absl::StrCat("group ", group.group, " is ready on ", PlaceText(group)), now);
}

void ClusterState::StartRemotePart(Job& job, GroupRecord& group, const GroupPart& lead, const v1::RemoteStart& remote,
                                   Instant now) {
  const auto part = std::find_if(group.parts.begin(), group.parts.end(), [&](const GroupPart& other) {
    return !other.address.empty() && other.address == remote.address();
  });
  const Worker* worker = part == group.parts.end() ? nullptr : workers_.Find(part->worker);
  std::string refused;
  if (&lead != &group.parts[0]) {
    refused = absl::StrCat("worker ", lead.worker, " does not lead the group");
  } else if (part == group.parts.end() || part == group.parts.begin()) {
    refused = absl::StrCat("no other part of the group is at ", Shortened(remote.address(), 64));
  } else if (IsTooLong(remote)) {
    refused = "its arguments are too long";
  } else if (worker == nullptr || worker->session == 0) {
    refused = absl::StrCat("worker ", part->worker, " is not connected");
  }
  if (!refused.empty()) {
    return EndGroup(
        job, group,
        {false, absl::StatusCode::kUnavailable, absl::StrCat("a start on another node is refused: ", refused),
         job.live[group.group].furthest_step},
        now);
  }
  v1::WorkerCommand command;
  *command.mutable_launch()->mutable_group() = IdOf({job.record.job_id, group.group, group.incarnation});
  *command.mutable_launch()->mutable_arguments() = remote.arguments();
  effects_.Send(worker->session, std::move(command));
}

void ClusterState::EndPart(Job& job, GroupRecord& group, GroupPart& part, const GroupOutcome& outcome, Instant now) {
  LiveGroup& live = job.live[group.group];
  if (outcome.ok) {
    part.ended = true;
    const bool all = std::all_of(group.parts.begin(), group.parts.end(), [](const GroupPart& p) { return p.ended; });
    if (all) return EndGroup(job, group, outcome, now);
    return Store(job);
  }
  // The worker of the rank that failed first knows the cause. Otherwise mpirun does: it sees which rank died first.
  const std::string& knows = live.failed_on.empty() ? group.parts[0].worker : live.failed_on;
  GroupOutcome told = outcome;
  told.message = absl::StrCat("worker ", part.worker, ": ", outcome.message);
  const bool is_known = part.worker == knows;
  if (live.outcome_so_far.has_value()) {
    if (!is_known) told = *live.outcome_so_far;
    // The earlier message may tell more, for example that a worker was shut down. mpirun only sees that its daemon
    // there is gone.
    if (is_known) absl::StrAppend(&told.message, "; before that, ", live.outcome_so_far->message);
  }
  if (is_known || !workers_.IsConnected(knows) || PartOn(group, knows)->ended) {
    told.message = absl::StrCat(workers_.GoneText(group), told.message);
    return EndGroup(job, group, told, now);
  }
  if (live.outcome_so_far.has_value()) return;
  live.outcome_so_far = std::move(told);
  live.outcome_due = now.steady + kAwaitOtherPart;
  ExpectParts(job, group);
}

void ClusterState::ExpectParts(const Job& job, const GroupRecord& group) {
  const LiveGroup& live = job.live[group.group];
  absl::Duration due = absl::InfiniteDuration();
  if (group.parts.size() > 1 && IsPlaced(group.state) && !HasEnded(job.record.state)) {
    if (live.outcome_so_far.has_value()) due = live.outcome_due;
    if (!live.launched) due = std::min(due, live.ready_by);
  }
  parts_due_.Set({job.record.number, group.group}, due);
}

void ClusterState::CheckParts(Instant now) {
  for (const auto& [number, index] : parts_due_.TakeDue(now.steady)) {
    Job* job = jobs_.FindNumber(number);
    // Meanwhile the job may have got fewer groups.
    if (job == nullptr || index >= job->record.groups.size()) continue;
    GroupRecord& group = job->record.groups[index];
    CheckParts(*job, group, now);
    ExpectParts(*job, group);
  }
}

void ClusterState::CheckParts(Job& job, GroupRecord& group, Instant now) {
  LiveGroup& live = job.live[group.group];
  if (HasEnded(job.record.state) || group.parts.size() < 2 || !IsPlaced(group.state)) return;
  if (live.outcome_so_far.has_value() && now.steady >= live.outcome_due) {
    GroupOutcome outcome = *live.outcome_so_far;
    outcome.message = absl::StrCat(workers_.GoneText(group), outcome.message);
    EndGroup(job, group, outcome, now);
  } else if (!live.launched && now.steady >= live.ready_by) {
    const auto late = std::find_if(group.parts.begin(), group.parts.end(),
                                   [&](const GroupPart& part) { return live.ready.count(part.worker) == 0; });
    EndGroup(job, group,
             {false, absl::StatusCode::kUnavailable,
              absl::StrCat("worker ", late->worker, " was not ready to start its ranks within ",
                           absl::FormatDuration(PartLimitsOf(job.record.spec.command()).ready)),
              live.furthest_step},
             now);
  }
}

void ClusterState::StopParts(const Job& job, const GroupRecord& group, absl::string_view why, StopHow how) {
  const GroupKey key{job.record.job_id, group.group, group.incarnation};
  for (const GroupPart& part : group.parts) {
    const Worker* worker = workers_.Find(part.worker);
    if (worker == nullptr || worker->session == 0 || worker->occupants.count(key) == 0) continue;
    effects_.SendStop(worker->session, key, why, how == StopHow::kLeave);
  }
}

}  // namespace hooke
