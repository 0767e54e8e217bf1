// ClusterState: what placement knows of workers and jobs. A large cluster has tens of thousands of workers and groups,
// of which few change between two placements. So rooms and tallies are kept, and made anew only if they have changed.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/scheduling/pace.h"

namespace hooke {
namespace {

// Returns all fields of the worker as a text, by which two workers are compared.
std::string TextOf(const FreeWorker& worker) {
  std::string text =
      absl::StrCat(worker.name, " ", worker.site, " ", worker.slots, " ", worker.free, " ", worker.allows_commands, " ",
                   worker.address, " ", worker.mpi, " ", worker.drained, " ", worker.ends, " ", worker.avoided, " ",
                   worker.only_job, " ", worker.gpus, " ", worker.version);
  std::vector<std::string> occupants;
  for (const Occupant& one : worker.occupants) {
    occupants.push_back(
        absl::StrCat(one.job_id, ":", one.ranks, ":",
                     one.ends_at.has_value() ? absl::FormatDuration(*one.ends_at) : std::string("unknown")));
  }
  std::sort(occupants.begin(), occupants.end());
  for (const std::string& occupant : occupants) absl::StrAppend(&text, " ", occupant);
  return text;
}

std::string TextOf(const WaitingGroup& group) {
  std::string text = absl::StrCat(group.job_id, " ", group.group, " ", group.ranks, " ", group.site, " ", group.command,
                                  " ", group.owner, " ", group.gpus_per_rank);
  for (const std::string& worker : group.unwanted) absl::StrAppend(&text, " ", worker);
  return text;
}

}  // namespace

WaitingGroup ClusterState::WaitingGroupOf(const Job& job, uint32_t group) {
  const v1::GroupKind kind = KindOf(job.record.spec, group);
  WaitingGroup waits = {job.record.job_id, group, kind.ranks(), kind.site()};
  waits.command = HasCommand(job.record.spec);
  waits.owner = job.record.spec.owner();
  waits.gpus_per_rank = kind.gpus_per_rank();
  waits.unwanted = job.live[group].unwanted;
  return waits;
}

const ClusterState::Tally& ClusterState::TallyOf(Job& job) {
  if (!job.tally.fresh) job.tally = MakeTally(job);
  return job.tally;
}

ClusterState::Tally ClusterState::MakeTally(const Job& job) {
  Tally tally;
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

void ClusterState::RefreshRooms(Instant now) {
  for (std::string& name : rooms_due_.TakeDue(now.steady)) changed_rooms_.insert(std::move(name));
  for (const std::string& name : std::exchange(changed_rooms_, {})) {
    const auto found = workers_.find(name);
    const bool alive = found != workers_.end() && IsAlive(found->second, now);
    if (!alive) rooms_.Remove(name);
    if (found != workers_.end()) found->second.has_room = alive;
    if (!alive) continue;
    const Worker& worker = found->second;
    rooms_.Put(RoomOf(worker, now));
    absl::Duration due = worker.last_heard.steady + options_.liveness.silent_after;
    const std::optional<Avoidance> avoidance = Avoid(worker.deaths, now.steady, options_.avoid);
    if (avoidance.has_value()) due = std::min(due, avoidance->until);
    rooms_due_.Set(name, due);
  }
  if (options_.compare_kept) CompareKept(now);
}

FreeWorker ClusterState::RoomOf(const Worker& worker, Instant now) const {
  FreeWorker room = WholeWorker(worker);
  room.occupants.reserve(worker.occupants.size());
  for (const auto& [key, ranks] : worker.occupants) {
    // A worker may name any job. Only ids of our own are fit for texts.
    const auto number = number_of_job_.find(key.job_id);
    const bool known = number != number_of_job_.end();
    room.occupants.push_back(
        {known ? key.job_id : "", ranks, known ? EndsAt(jobs_.at(number->second), key) : std::nullopt});
  }
  room.free = worker.slots - static_cast<uint32_t>(std::min<uint64_t>(worker.slots, worker.slots_used()));
  room.drained = !worker.gets_groups();
  room.ends = worker.ends && worker.drain == v1::DRAIN_NONE;
  room.avoided = Avoid(worker.deaths, now.steady, options_.avoid).has_value();
  return room;
}

std::optional<absl::Duration> ClusterState::EndsAt(const Job& job, const GroupKey& key) {
  if (HasEnded(job.record.state) || key.group >= job.record.groups.size()) return std::nullopt;
  const GroupRecord& group = job.record.groups[key.group];
  const LiveGroup& live = job.live[key.group];
  const bool steady = group.state == v1::GROUP_STATE_RUNNING && group.task == v1::GroupStart::TRAIN &&
                      group.incarnation == key.incarnation && live.first_work.has_value() && live.silences.empty() &&
                      live.leaves.empty();
  if (!steady) return std::nullopt;
  const std::optional<absl::Duration> left = TimeLeft(
      {live.first_work_step, live.progress.step(), live.progress.steps_total(), live.last_work - *live.first_work});
  if (!left.has_value()) return std::nullopt;
  return live.last_work + *left;
}

void ClusterState::CompareKept(Instant now) {
  std::vector<std::string> anew, kept;
  for (const auto& [name, worker] : workers_) {
    if (IsAlive(worker, now)) anew.push_back(TextOf(RoomOf(worker, now)));
  }
  for (const Room* room : rooms_.all()) kept.push_back(TextOf(room->worker));
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state) || !job.tally.fresh) continue;
    const Tally tallies[] = {MakeTally(job), job.tally};
    for (std::vector<std::string>* texts : {&anew, &kept}) {
      const Tally& tally = tallies[texts == &anew ? 0 : 1];
      texts->push_back(
          absl::StrCat(job.record.job_id, " ", tally.placed_slots, " ", tally.waiting_slots, " ", tally.spec_bytes));
      for (const WaitingGroup& group : tally.waiting) texts->push_back(TextOf(group));
    }
  }
  if (anew == kept) return;
  const auto differ = std::mismatch(anew.begin(), anew.end(), kept.begin(), kept.end());
  std::cerr << "kept: " << (differ.second == kept.end() ? "none" : *differ.second)
            << "; it should be: " << (differ.first == anew.end() ? "none" : *differ.first) << std::endl;
  std::abort();
}

}  // namespace hooke
