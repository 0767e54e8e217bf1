#include "server/cluster/room_table.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/tally.h"

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

void AddTexts(const JobRecord& job, const known::Tally& tally, std::vector<std::string>& texts) {
  texts.push_back(absl::StrCat(job.job_id, " ", tally.placed_slots, " ", tally.waiting_slots, " ", tally.spec_bytes));
  for (const WaitingGroup& group : tally.waiting) texts.push_back(TextOf(group));
}

}  // namespace

Rooms& RoomTable::Refresh(WorkerTable& workers, const JobTable& jobs, Instant now) {
  for (std::string& name : due_.TakeDue(now.steady)) changed_.insert(std::move(name));
  for (const std::string& name : std::exchange(changed_, {})) {
    known::Worker* worker = workers.Find(name);
    const bool alive = worker != nullptr && workers.IsAlive(*worker, now);
    if (!alive) rooms_.Remove(name);
    if (worker != nullptr) worker->has_room = alive;
    if (!alive) continue;
    rooms_.Put(RoomOf(*worker, jobs, now));
    absl::Duration due = worker->last_heard.steady + silent_after_;
    const std::optional<Avoidance> avoidance = Avoid(worker->deaths, now.steady, avoid_);
    if (avoidance.has_value()) due = std::min(due, avoidance->until);
    due_.Set(name, due);
  }
  return rooms_;
}

FreeWorker RoomTable::RoomOf(const known::Worker& worker, const JobTable& jobs, Instant now) const {
  FreeWorker room = WholeWorker(worker);
  room.occupants.reserve(worker.occupants.size());
  for (const auto& [key, ranks] : worker.occupants) {
    // A worker may name any job. Only ids of our own are fit for texts.
    const known::Job* job = jobs.Find(key.job_id);
    room.occupants.push_back(
        {job != nullptr ? key.job_id : "", ranks, job != nullptr ? EndsAt(*job, key) : std::nullopt});
  }
  room.free = worker.slots - static_cast<uint32_t>(std::min<uint64_t>(worker.slots, worker.slots_used()));
  room.drained = !worker.gets_groups();
  room.ends = worker.ends && worker.drain == v1::DRAIN_NONE;
  room.avoided = Avoid(worker.deaths, now.steady, avoid_).has_value();
  return room;
}

void RoomTable::CheckAllKept(const WorkerTable& workers, const JobTable& jobs, Instant now) const {
  std::vector<std::string> anew, kept;
  for (const auto& [name, worker] : workers) {
    if (workers.IsAlive(worker, now)) anew.push_back(TextOf(RoomOf(worker, jobs, now)));
  }
  for (const Room* room : rooms_.all()) kept.push_back(TextOf(room->worker));
  for (const auto& [number, job] : jobs) {
    if (HasEnded(job.record.state) || !job.tally.fresh) continue;
    AddTexts(job.record, MakeTally(job), anew);
    AddTexts(job.record, job.tally, kept);
  }
  if (anew == kept) return;
  const auto differ = std::mismatch(anew.begin(), anew.end(), kept.begin(), kept.end());
  std::cerr << "kept: " << (differ.second == kept.end() ? "none" : *differ.second)
            << "; it should be: " << (differ.first == anew.end() ? "none" : *differ.first) << std::endl;
  std::abort();
}

}  // namespace hooke
