#include "server/parameters/attachments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {

Attachments::Attachments(const ShardPlan& plan)
    : plan_(plan),
      groups_(std::make_unique<Group[]>(plan.job.groups())),
      told_(plan.job.groups()),
      paces_(plan.job.groups()) {}

absl::StatusOr<Attachments::Answer> Attachments::Attach(absl::Time now, const Speaker& speaker, absl::Duration lease) {
  absl::MutexLock lock(&mutex_);
  if (successor_ > 0) return WhyClosed();
  if (absl::Status status = Admit(speaker); !status.ok()) return status;
  AttachDecision decision = DecideAttach(now, attach_, speaker, lease);
  attach_ = decision.next;
  Told& told = told_[speaker.group];
  const bool changed = told.incarnation != speaker.incarnation || told.answer != decision.answer;
  told = {speaker.incarnation, decision.answer};
  return Answer{decision.answer, std::move(decision.reason), changed};
}

absl::Status Attachments::Admit(const Speaker& speaker) {
  if (absl::Status status = CheckSpeakerOf(plan_, speaker); !status.ok()) return status;
  std::atomic<uint32_t>& attached = groups_[speaker.group].attached;
  if (speaker.incarnation < attached) return Replaced(speaker.group, speaker.incarnation, attached);
  attached = speaker.incarnation;
  return absl::OkStatus();
}

absl::Status Attachments::Check(const Speaker& speaker) const {
  if (const uint32_t successor = successor_; speaker.incarnation < successor) {
    return GenerationOver(plan_.job_id, successor);
  }
  if (absl::Status status = CheckSpeakerOf(plan_, speaker); !status.ok()) {
    // A server that has gone back to a snapshot of an earlier generation may not know the sender's group yet.
    uint32_t latest = 0;
    for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
      latest = std::max<uint32_t>(latest, groups_[group].attached);
    }
    if (latest == 0 || speaker.incarnation <= latest) return status;
  } else {
    const uint32_t attached = groups_[speaker.group].attached;
    if (speaker.incarnation == attached) return absl::OkStatus();
    if (speaker.incarnation < attached) return Replaced(speaker.group, speaker.incarnation, attached);
  }
  return absl::NotFoundError(absl::StrCat("start ", speaker.incarnation, " of group ", speaker.group,
                                          " has not attached to the center of job ", plan_.job_id,
                                          " on this server; attach to it first"));
}

absl::Status Attachments::CheckOpen(const Speaker& speaker) const {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = Check(speaker); !status.ok()) return status;
  if (closed_) return WhyClosed();
  if (attach_.initialized) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the center of job ", plan_.job_id, " has no values here yet; attach to it first"));
}

absl::Status Attachments::CheckWaiting(const Speaker& speaker) const {
  if (closed_) return WhyClosed();
  if (stopping_) return absl::UnavailableError("this parameter server is stopping; try again");
  return Check(speaker);
}

bool Attachments::initialized() const {
  absl::MutexLock lock(&mutex_);
  return attach_.initialized;
}

absl::Status Attachments::WriteInitial(absl::Time now, const Speaker& speaker, absl::FunctionRef<void()> write) {
  // mutex_ is held during the write, because a sender that has lost its right must not write into an initialized
  // center.
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckInitializer(speaker); !status.ok()) return status;
  attach_.right->until = std::max(attach_.right->until, now + attach_.right->lease);
  write();
  return absl::OkStatus();
}

absl::Status Attachments::CompleteInitialize(const Speaker& speaker) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = Check(speaker); !status.ok()) return status;
  if (attach_.initialized) return absl::OkStatus();
  if (absl::Status status = CheckInitializer(speaker); !status.ok()) return status;
  attach_.initialized = true;
  return absl::OkStatus();
}

absl::Status Attachments::CheckInitializer(const Speaker& speaker) const {
  const bool may = !closed_ && !attach_.initialized && attach_.right.has_value() &&
                   attach_.right->group == speaker.group && attach_.right->incarnation == speaker.incarnation;
  if (may) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("group ", speaker.group,
                                             " has no right, or not any more, to initialize the center of job ",
                                             plan_.job_id, "; attach again"));
}

Attachments::Pace Attachments::TellPace(absl::Time now, uint32_t group, double steps_per_second) {
  absl::MutexLock lock(&mutex_);
  if (steps_per_second > 0) paces_[group] = {steps_per_second, now};
  return {FastestPace(paces_, now, kPaceMemory), stops_};
}

absl::Status Attachments::End(const Speaker& speaker, bool stops) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = Check(speaker); !status.ok()) return status;
  if (successor_ > 0) return WhyClosed();  // The successor has copied stops_, or is about to.
  if (!HasEnded(speaker) || (stops && !stops_)) changes_.fetch_add(1, std::memory_order_release);
  groups_[speaker.group].ended = speaker.incarnation;
  stops_ = stops_ || stops;
  return absl::OkStatus();
}

void Attachments::Close(uint32_t successor) {
  absl::MutexLock lock(&mutex_);
  // A start that was cut off may come back after this server was started again, even one that has never attached. So a
  // snapshot must have the end.
  if (successor > successor_) changes_.fetch_add(1, std::memory_order_release);
  successor_ = successor;
  closed_ = true;
}

absl::Status Attachments::WhyClosed() const {
  if (const uint32_t successor = successor_; successor > 0) return GenerationOver(plan_.job_id, successor);
  return absl::FailedPreconditionError(absl::StrCat("job ", plan_.job_id, " has ended"));
}

AttachedGroups Attachments::Copy() const {
  absl::MutexLock lock(&mutex_);
  AttachedGroups copy;
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
    copy.incarnations.push_back(groups_[group].attached);
    copy.ended.push_back(groups_[group].ended);
  }
  copy.stop = stops_;
  copy.successor = successor_;
  return copy;
}

void Attachments::Restore(const AttachedGroups& groups) {
  absl::MutexLock lock(&mutex_);
  for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
    groups_[group].attached = groups.incarnations[group];
    groups_[group].ended = groups.ended[group];
  }
  attach_.initialized = true;
  stops_ = groups.stop;
  successor_ = groups.successor;
  closed_ = groups.successor > 0;
}

void Attachments::GoOn(const Attachments& before) {
  const bool initialized = before.initialized();
  const bool stops = before.Copy().stop;
  absl::MutexLock lock(&mutex_);
  attach_.initialized = initialized;
  stops_ = stops;
}

}  // namespace hooke
