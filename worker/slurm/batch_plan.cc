#include "worker/slurm/batch_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

// The most batch jobs that a note names.
constexpr size_t kIdsMax = 3;

// Returns "Slurm jobs 7, 8 wait: Priority". An empty reason means that the batch jobs run and wait for nothing, so the
// text is "Slurm jobs 7, 8 start their workers".
std::string DoingText(const std::vector<std::string>& ids, const std::string& reason) {
  const bool one = ids.size() == 1;
  const std::string who = ids.size() > kIdsMax ? absl::StrCat(ids.size(), " Slurm jobs")
                                               : absl::StrCat("Slurm job", one ? " " : "s ", absl::StrJoin(ids, ", "));
  if (reason.empty()) return absl::StrCat(who, one ? " starts its workers" : " start their workers");
  return absl::StrCat(who, one ? " waits: " : " wait: ", reason);
}

bool HasNoNodes(const BatchJob& job) {
  return job.state == BatchJob::State::kWaits || job.state == BatchJob::State::kHeld;
}

}  // namespace

std::string BatchIdOf(const std::string& worker) {
  const std::string id = worker.substr(worker.rfind('-') + 1);  // The whole name if there is no "-".
  const bool number = std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isdigit(c); });
  return number && id.size() < worker.size() ? id : "";
}

BatchPlan::Actions BatchPlan::Next(const v1::SiteHeartbeatResponse& site, const std::vector<BatchJob>& queue,
                                   absl::Duration now) {
  Actions actions;
  last_ = now;
  failed_this_turn_.clear();
  waiting_.clear();
  for (const v1::SiteJob& job : site.jobs()) {
    if (!job.waiting_ranks().empty()) waiting_.insert(job.job_id());
  }
  told_.Next(waiting_, now);
  TakeQueue(queue, now, actions);
  TakeWorkers(site, now);
  GiveUp(now, actions);
  full_.clear();
  for (const v1::SiteJob& job : site.jobs()) Serve(job, now, actions);
  EndUnneeded(site, now, actions);
  for (const std::string& job_id : site.ended_jobs()) {
    failures_.erase(job_id);
    told_.Forget(job_id);
  }
  return actions;
}

void BatchPlan::TakeQueue(const std::vector<BatchJob>& queue, absl::Duration now, Actions& actions) {
  std::set<std::string> seen, brief;
  for (const BatchJob& job : queue) {
    seen.insert(job.id);
    Known& known = known_[job.id];
    known.job = job;
    if (job.state != BatchJob::State::kRuns) {
      known.runs_since = absl::InfiniteDuration();
      // Slurm may start it once more, with other workers.
      if (HasNoNodes(job)) {
        if (known.had_groups) Tell(job.job_id, absl::StrCat("Slurm requeued Slurm job ", job.id), now);
        known.had_workers = known.had_all = known.had_groups = known.ran_long = false;
      }
    } else if (known.runs_since == absl::InfiniteDuration()) {
      known.runs_since = now;
    }
  }
  for (auto it = known_.begin(); it != known_.end();) {
    const Known& known = it->second;
    const bool gone = seen.count(it->first) == 0;
    const bool told = known.ended_at != absl::InfiniteDuration();
    if (gone && !told && known.had_groups) {
      actions.gone.push_back(known.job);
      // However many end in one turn, they are one failure.
      if (brief.insert(known.job.job_id).second) NoteBriefRun(known, now);
    } else if (gone && !told && waiting_.count(known.job.job_id) > 0) {
      actions.lost.push_back({known.job, known.had_workers ? Lost::Why::kNoGroup : Lost::Why::kNoWorkers});
    }
    it = gone ? known_.erase(it) : std::next(it);
  }
}

void BatchPlan::TakeWorkers(const v1::SiteHeartbeatResponse& site, absl::Duration now) {
  for (auto& [id, known] : known_) known.slots = known.used = 0;
  for (const v1::SiteJob& job : site.jobs()) {
    for (const v1::SiteWorker& worker : job.workers()) {
      const auto found = known_.find(BatchIdOf(worker.name()));
      // Workers of a batch job without nodes are those of its last start, which the coordinator still knows.
      if (found == known_.end() || HasNoNodes(found->second.job)) continue;
      Known& known = found->second;
      known.had_workers = true;
      known.slots += worker.slots();
      known.used += std::min(worker.slots(), worker.slots_used());
      if (worker.slots_used() > 0) NoteGroups(known, now);
    }
  }
  for (auto& [id, known] : known_) {
    known.had_all = known.had_all || (known.had_workers && known.slots >= known.job.ranks);
    const bool ends = known.ended_at != absl::InfiniteDuration();
    const bool waits = known.job.state == BatchJob::State::kWaits;
    const bool whole = waits || Starts(known, now);
    const uint64_t slots = whole ? std::max<uint64_t>(known.slots, known.job.ranks) : known.slots;
    const bool serves = !ends && (waits || known.job.state == BatchJob::State::kRuns);
    known.free = serves ? slots - known.used : 0;
  }
}

// The first group shows that Slurm serves the job. Later ones show nothing about the job's other batch jobs.
void BatchPlan::NoteGroups(Known& known, absl::Duration now) {
  const bool is_first = !std::exchange(known.had_groups, true);
  if (is_first) known.groups_since = now;
  const bool is_long = now - known.groups_since >= options_.brief && !std::exchange(known.ran_long, true);
  const auto failure = failures_.find(known.job.job_id);
  if (failure == failures_.end()) return;
  if (failure->second.ran_briefly ? is_long : is_first) failures_.erase(failure);
}

void BatchPlan::NoteBriefRun(const Known& known, absl::Duration now) {
  if (now - known.groups_since >= options_.brief) return;
  Failure& failure = failures_[known.job.job_id];
  failure.ran_briefly = true;
  if (failure.in_a_row > 0) return Postpone(failure, now);
  failure.in_a_row = 1;
  failure.again_at = now;
}

bool BatchPlan::Starts(const Known& known, absl::Duration now) const {
  return known.job.state == BatchJob::State::kRuns && !known.had_all &&
         now - known.runs_since < options_.workers_within;
}

// Ends the batch jobs from which no group can expect anything.
void BatchPlan::GiveUp(absl::Duration now, Actions& actions) {
  for (auto& [id, known] : known_) {
    if (known.ended_at != absl::InfiniteDuration() || actions.ends.size() >= options_.ends_max) continue;
    const bool held = known.job.state == BatchJob::State::kHeld;
    const bool runs = known.job.state == BatchJob::State::kRuns;
    const bool late = runs && !known.had_all && known.used == 0 && !Starts(known, now);
    if (!held && !late) continue;
    known.ended_at = now;
    known.free = 0;
    actions.ends.push_back({id, !held});
    if (waiting_.count(known.job.job_id) == 0) continue;
    actions.lost.push_back({known.job, held ? Lost::Why::kHeld : Lost::Why::kLateWorkers});
  }
}

uint64_t BatchPlan::RanksInSlurm() const {
  uint64_t ranks = 0;
  for (const auto& [id, known] : known_) ranks += known.job.ranks;
  return ranks;
}

void BatchPlan::Serve(const v1::SiteJob& job, absl::Duration now, Actions& actions) {
  std::vector<uint32_t> waiting(job.waiting_ranks().begin(), job.waiting_ranks().end());
  std::sort(waiting.begin(), waiting.end(), std::greater<>());
  const auto failure = failures_.find(job.job_id());
  const bool failed_now = std::any_of(actions.lost.begin(), actions.lost.end(),
                                      [&job](const Lost& lost) { return lost.job.job_id == job.job_id(); });
  uint64_t in_slurm = RanksInSlurm();
  for (const Submission& submission : actions.submissions) in_slurm += submission.ranks;
  for (const uint32_t ranks : waiting) {
    Known* best = nullptr;
    for (auto& [id, known] : known_) {
      if (known.job.job_id != job.job_id() || known.free < ranks) continue;
      if (best == nullptr || known.free < best->free) best = &known;
    }
    if (best != nullptr) {
      best->free -= ranks;
      continue;
    }
    if (failed_now || (failure != failures_.end() && now < failure->second.again_at)) continue;
    if (ranks > options_.ranks_max) {
      full_[job.job_id()] = absl::StrCat("a group of ", ranks, " ranks can never start here: the site may have ",
                                         options_.ranks_max, " in Slurm (--slurm-ranks)");
      continue;
    }
    if (in_slurm + ranks > options_.ranks_max) {
      full_[job.job_id()] = absl::StrCat("this site has ", in_slurm, " ranks in Slurm, and may have ",
                                         options_.ranks_max, " (--slurm-ranks)");
      continue;
    }
    in_slurm += ranks;
    actions.submissions.push_back({job.job_id(), ranks, job.slurm(), job.gpus_per_rank()});
  }
}

void BatchPlan::EndUnneeded(const v1::SiteHeartbeatResponse& site, absl::Duration now, Actions& actions) {
  const std::set<std::string> ended(site.ended_jobs().begin(), site.ended_jobs().end());
  for (auto& [id, known] : known_) {
    const bool waits = HasNoNodes(known.job);
    // Running ones end by themselves if they have nothing to do (--exit-idle). Meanwhile a group may start again there.
    const bool unused = waits && known.free == known.job.ranks;
    known.unneeded_since = unused ? std::min(known.unneeded_since, now) : absl::InfiniteDuration();
    if (actions.ends.size() >= options_.ends_max || known.job.state == BatchJob::State::kEnds) continue;
    if (known.ended_at != absl::InfiniteDuration()) {
      if (now - known.ended_at < options_.end_within) continue;
      known.ended_at = now;
      actions.ends.push_back({id, false});
      continue;
    }
    // If groups of the job wait now, other batch jobs serve them, and this one is surplus. If the coordinator lists no
    // waiting group of the job, that may be so for a short time only.
    const bool named = waiting_.count(known.job.job_id) > 0;
    const bool unneeded = unused && (named || now - known.unneeded_since >= options_.unneeded_for);
    if (!unneeded && ended.count(known.job.job_id) == 0) continue;
    known.ended_at = now;
    actions.ends.push_back({id, !waits});
  }
}

void BatchPlan::Submitted(const Submission& submission, const std::string& id) {
  known_[id].job = {id, submission.job_id, submission.ranks, BatchJob::State::kWaits, "just submitted"};
}

void BatchPlan::Failed(const std::string& job_id, const std::string& why, absl::Duration now) {
  if (!failed_this_turn_.insert(job_id).second) return;
  Failure& failure = failures_[job_id];
  failure.why = why;
  Postpone(failure, now);
}

void BatchPlan::Postpone(Failure& failure, absl::Duration now) const {
  absl::Duration pause = options_.retry_min;
  for (int i = 0; i < failure.in_a_row && pause < options_.retry_max; ++i) pause *= 2;
  ++failure.in_a_row;
  failure.again_at = now + std::min(pause, options_.retry_max);
}

std::vector<v1::SiteNote> BatchPlan::Notes() const {
  std::map<std::string, std::vector<std::string>> texts = told_.Texts();
  for (const auto& [job_id, failure] : failures_) {
    // If nothing waits, a group has found another place, and the failure is of no interest.
    if (waiting_.count(job_id) > 0 && !failure.why.empty()) {
      texts[job_id].push_back(failure.why + "; it is tried again");
    } else if (waiting_.count(job_id) > 0 && last_ < failure.again_at) {
      texts[job_id].push_back(
          "several batch jobs ended within a minute of their first group, as under too short a time limit; "
          "the next one follows after a pause");
    }
  }
  for (const auto& [job_id, text] : full_) texts[job_id].push_back(text);
  // Job -> what its batch jobs wait for, or "" -> their ids.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> doing;
  for (const auto& [id, known] : known_) {
    if (known.ended_at != absl::InfiniteDuration() || known.job.state == BatchJob::State::kEnds) continue;
    const bool waits = HasNoNodes(known.job);
    if (!waits && !Starts(known, last_)) continue;
    doing[known.job.job_id][waits ? known.job.reason : ""].push_back(id);
  }
  for (const auto& [job_id, states] : doing) {
    for (const auto& [reason, ids] : states) texts[job_id].push_back(DoingText(ids, reason));
  }
  std::vector<v1::SiteNote> notes;
  for (const auto& [job_id, parts] : texts) {
    v1::SiteNote& note = notes.emplace_back();
    note.set_job_id(job_id);
    note.set_text(absl::StrJoin(parts, "; "));
  }
  return notes;
}

std::set<std::string> BatchPlan::Jobs() const {
  std::set<std::string> jobs;
  for (const auto& [id, known] : known_) jobs.insert(known.job.job_id);
  for (const auto& [job_id, failure] : failures_) jobs.insert(job_id);
  for (const auto& [job_id, texts] : told_.Texts()) jobs.insert(job_id);
  return jobs;
}

}  // namespace hooke
