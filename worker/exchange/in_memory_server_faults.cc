// InMemoryServer: its disk, the faults that tests switch on, and the counts that tests read.

#include <iterator>
#include <tuple>
#include <utility>

#include "worker/exchange/in_memory_server.h"

namespace hooke {

absl::Status InMemoryServer::Save(const v1::SaveRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (!reachable_) return absl::UnavailableError("connection refused");
  if (!save_error_.ok()) return save_error_;
  if (restart_before_save_) LoadDisk();
  restart_before_save_ = false;
  if (center_.empty()) return absl::NotFoundError("no such job");
  if (absl::Status status = CheckSender(request.sender()); !status.ok()) return status;
  if (request.ends()) ended_.insert(request.sender().group());
  stops_ = stops_ || request.stops();
  disk_center_ = center_;
  disk_answered_ = answered_;
  return absl::OkStatus();
}

absl::Status InMemoryServer::KeepState(const StateToKeep& state) {
  absl::MutexLock lock(&mutex_);
  if (!reachable_) return absl::UnavailableError("connection refused");
  if (!keep_error_.ok()) return keep_error_;
  if (failing_keeps_ > 0) {
    --failing_keeps_;
    return absl::UnavailableError("connection reset");
  }
  const v1::Sender& sender = state.header.sender();
  if (absl::Status status = CheckSender(sender); !status.ok()) return status;
  const StateKey key = {sender.group(), sender.rank(), sender.incarnation(), state.header.step()};
  const v1::StateId& keeps = state.header.keeps();
  const StateKey kept = {sender.group(), sender.rank(), keeps.incarnation(), keeps.step()};
  for (auto each = states_.begin(); each != states_.end();) {
    const bool own = std::get<0>(each->first) == sender.group() && std::get<1>(each->first) == sender.rank();
    each = own && each->first != kept ? states_.erase(each) : std::next(each);
  }
  states_[key] = std::string(state.state);
  return absl::OkStatus();
}

absl::StatusOr<FetchedState> InMemoryServer::FetchState(const v1::FetchStateRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (!fetch_error_.ok()) return fetch_error_;
  if (!reachable_) return absl::UnavailableError("connection refused");
  const v1::Sender& sender = request.sender();
  FetchedState fetched;
  for (auto each = states_.rbegin(); each != states_.rend(); ++each) {
    const auto& [group, rank, incarnation, step] = each->first;
    if (group != sender.group() || rank != sender.rank()) continue;
    fetched.states.emplace_back().set_incarnation(incarnation);
    fetched.states.back().set_step(step);
  }
  if (!request.has_state()) return fetched;
  if (states_damaged_) return absl::DataLossError("the state is damaged");
  const auto found =
      states_.find({sender.group(), sender.rank(), request.state().incarnation(), request.state().step()});
  if (found == states_.end()) return absl::NotFoundError("no such state");
  fetched.state = found->second;
  return fetched;
}

void InMemoryServer::LoadDisk() {
  center_ = disk_center_;
  answered_ = loaded_ = disk_answered_;
  ++restarts_;
  ++generation_;
}

void InMemoryServer::SetReachable(bool reachable) {
  absl::MutexLock lock(&mutex_);
  reachable_ = reachable;
  if (!reachable) ++generation_;
}

void InMemoryServer::SetAnswering(bool answering) {
  absl::MutexLock lock(&mutex_);
  answering_ = answering;
}

void InMemoryServer::SetWaitingForGroups(bool waiting) {
  absl::MutexLock lock(&mutex_);
  waiting_ = waiting;
}

void InMemoryServer::FailQuestions(int times) {
  absl::MutexLock lock(&mutex_);
  failing_questions_ = times;
}

void InMemoryServer::SetLosingAnswers(bool losing) {
  absl::MutexLock lock(&mutex_);
  losing_ = losing;
}

void InMemoryServer::BreakAfterApplying(int messages) {
  absl::MutexLock lock(&mutex_);
  break_after_ = messages;
}

void InMemoryServer::SetError(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  error_ = std::move(error);
}

void InMemoryServer::Restart() {
  absl::MutexLock lock(&mutex_);
  LoadDisk();
}

void InMemoryServer::RestartBeforeSave() {
  absl::MutexLock lock(&mutex_);
  restart_before_save_ = true;
}

void InMemoryServer::SetSaveError(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  save_error_ = std::move(error);
}

void InMemoryServer::SetFetchError(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  fetch_error_ = std::move(error);
}

void InMemoryServer::SetKeepError(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  keep_error_ = std::move(error);
}

void InMemoryServer::FailKeeps(int times) {
  absl::MutexLock lock(&mutex_);
  failing_keeps_ = times;
}

void InMemoryServer::DamageStates() {
  absl::MutexLock lock(&mutex_);
  states_damaged_ = true;
}

void InMemoryServer::Forget() {
  absl::MutexLock lock(&mutex_);
  states_.clear();
  disk_center_.clear();
  disk_answered_.clear();
  center_.clear();
  answered_.clear();
  incarnations_.clear();
  ++generation_;
}

void InMemoryServer::MakeWait(int times) {
  absl::MutexLock lock(&mutex_);
  waits_ = times;
}

std::vector<float> InMemoryServer::center() const {
  absl::MutexLock lock(&mutex_);
  return center_;
}

int InMemoryServer::applied() const {
  absl::MutexLock lock(&mutex_);
  return applied_;
}

int InMemoryServer::repeated() const {
  absl::MutexLock lock(&mutex_);
  return repeated_;
}

std::set<uint32_t> InMemoryServer::ended() const {
  absl::MutexLock lock(&mutex_);
  return ended_;
}

int InMemoryServer::streams() const {
  absl::MutexLock lock(&mutex_);
  return streams_;
}

v1::JobSpecForShard InMemoryServer::job() const {
  absl::MutexLock lock(&mutex_);
  return job_.job();
}

v1::Layout InMemoryServer::layout() const {
  absl::MutexLock lock(&mutex_);
  return job_.layout();
}

}  // namespace hooke
