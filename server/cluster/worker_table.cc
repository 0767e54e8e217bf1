#include "server/cluster/worker_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Workers of batch jobs never come back, so they are forgotten sooner.
constexpr absl::Duration kForgetBatchAfter = absl::Minutes(2);

// Returns when a lost worker is forgotten, on the steady clock.
absl::Duration ForgottenAt(const known::Worker& worker) {
  if (worker.only_job.empty()) return worker.last_heard.steady + kForgetAfter;
  // The worker of a batch job does not come back once it has ended. If it was only cut off, it may.
  return worker.last_heard.steady + (worker.ends ? absl::ZeroDuration() : kForgetBatchAfter);
}

}  // namespace

known::Worker& WorkerTable::Add(const std::string& name, Instant now) {
  const auto [worker, is_new] = workers_.try_emplace(name);
  if (is_new) worker->second.name = name;
  if (is_new) worker->second.last_heard = now;
  return worker->second;
}

known::Worker* WorkerTable::Find(const std::string& name) {
  const auto worker = workers_.find(name);
  return worker == workers_.end() ? nullptr : &worker->second;
}

const known::Worker* WorkerTable::Find(const std::string& name) const {
  const auto worker = workers_.find(name);
  return worker == workers_.end() ? nullptr : &worker->second;
}

known::Worker* WorkerTable::OfSession(SessionId session) {
  const auto name = of_session_.find(session);
  return name == of_session_.end() ? nullptr : &workers_.at(name->second);
}

void WorkerTable::BeginSession(known::Worker& worker) {
  worker.session = next_session_++;
  of_session_[worker.session] = worker.name;
}

void WorkerTable::EndSession(known::Worker& worker) {
  of_session_.erase(worker.session);
  worker.session = 0;
}

bool WorkerTable::IsAlive(const known::Worker& worker, Instant now) const {
  return !worker.lost && Answers(worker, now);
}

bool WorkerTable::Answers(const known::Worker& worker, Instant now) const {
  return worker.session != 0 && LivenessOf(worker.last_heard, now, liveness_) == Liveness::kAlive;
}

bool WorkerTable::IsConnected(const std::string& worker) const {
  const known::Worker* found = Find(worker);
  return found != nullptr && found->session != 0;
}

bool WorkerTable::MayRun(const std::string& job_id) const {
  return std::any_of(workers_.begin(), workers_.end(), [&job_id](const auto& named) {
    const auto& occupants = named.second.occupants;
    return std::any_of(occupants.begin(), occupants.end(),
                       [&job_id](const auto& occupant) { return occupant.first.job_id == job_id; });
  });
}

std::string WorkerTable::GoneText(const GroupRecord& group) const {
  std::string text;
  for (const GroupPart& part : group.parts) {
    if (!part.ended && !IsConnected(part.worker)) absl::StrAppend(&text, "worker ", part.worker, " is gone; ");
  }
  return text;
}

std::string WorkerTable::WorkerToBlame(const GroupRecord& group, const known::LiveGroup& live) const {
  if (!live.failed_on.empty()) return live.failed_on;
  if (group.parts.size() == 1) return group.parts[0].worker;
  for (const GroupPart& part : group.parts) {
    if (!part.ended && !IsConnected(part.worker)) return part.worker;
  }
  return "";
}

absl::Duration WorkerTable::NextCheckOf(const known::Worker& worker) const {
  const absl::Duration heard = worker.last_heard.steady;
  if (!worker.silent && !worker.lost) return heard + liveness_.silent_after;
  if (!worker.lost) return heard + liveness_.lease;
  if (worker.drain != v1::DRAIN_NONE) return absl::InfiniteDuration();
  return ForgottenAt(worker);
}

bool WorkerTable::IsForgotten(const known::Worker& worker, Instant now) {
  return worker.lost && worker.drain == v1::DRAIN_NONE && now.steady >= ForgottenAt(worker);
}

}  // namespace hooke
