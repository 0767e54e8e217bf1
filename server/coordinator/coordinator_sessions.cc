// Coordinator: the workers' sessions. A worker's commands wait in its session until they may be sent.

#include <utility>

#include "server/coordinator/coordinator.h"

namespace hooke {

Coordinator::Outgoing Coordinator::TakeCommands(SessionId session) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return {{}, false};
  return {found->second.outbox.TakeReady(), found->second.open && !stopped_};
}

std::vector<Coordinator::Ready> Coordinator::TakeReady() {
  std::vector<Ready> ready;
  absl::MutexLock lock(&mutex_);
  ready.reserve(ready_.size());
  for (const SessionId id : std::exchange(ready_, {})) ready.push_back({id, sessions_.at(id).open && !stopped_});
  return ready;
}

void Coordinator::OnReady(std::function<void()> tell) {
  {
    absl::MutexLock lock(&mutex_);
    tell_ready_ = std::move(tell);
    must_tell_ = !ready_.empty();
  }
  TellReady();
}

void Coordinator::MarkReady(SessionId id) {
  if (ready_.empty()) must_tell_ = true;
  ready_.insert(id);
}

void Coordinator::TellReady() {
  std::function<void()> tell;
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(must_tell_, false)) return;
    tell = tell_ready_;
  }
  if (tell) tell();
}

void Coordinator::Deliver(Effects& effects, Instant now) {
  std::map<SessionId, Session*> touched;
  const auto session_of = [&](SessionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto found = sessions_.find(id);
    if (found == sessions_.end() || !found->second.open) return static_cast<Session*>(nullptr);
    return touched[id] = &found->second;
  };
  for (Effects::Command& command : effects.commands) {
    Session* session = session_of(command.session);
    if (session != nullptr) session->outbox.Add(std::move(command.command), queue_.BatchOf(command.after));
  }
  for (const auto& [where, number] : effects.seen) {
    Session* session = session_of(where.first);
    if (session != nullptr) session->outbox.AddSeen(where.second, number, queue_.BatchOf(where.second.job_id));
  }
  for (const auto& [id, session] : touched) {
    if (session->outbox.HasReady()) MarkReady(id);
    if (session->outbox.bytes() > options_.outbox_bytes_max) effects.closed[id] = "the worker reads too slowly";
  }
  for (const auto& [id, why] : effects.closed) Close(id, why, now);
}

void Coordinator::Close(SessionId id, const std::string& why, Instant now) {
  auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.open) return;
  found->second.outbox = SessionOutbox();
  found->second.open = false;
  MarkReady(id);
  state_.EndSession(id, why, now);
}

}  // namespace hooke
