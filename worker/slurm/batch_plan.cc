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

// Example: "Slurm jobs 7, 8 wait: Priority". Without a reason they have nodes, and their workers have not come yet.
std::string DoingText(const std::vector<std::string>& ids, const std::string& reason) {
  const bool one = ids.size() == 1;
  const std::string who = ids.size() > kIdsMax ? absl::StrCat(ids.size(), " Slurm jobs")
                                               : absl::StrCat("Slurm job", one ? " " : "s ", absl::StrJoin(ids, ", "));
  if (reason.empty()) return absl::StrCat(who, one ? " starts its workers" : " start their workers");
  return absl::StrCat(who, one ? " waits: " : " wait: ", reason);
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
  TakeQueue(site, queue, now, actions);
  TakeWorkers(site);
  full_.clear();
  for (const v1::SiteJob& job : site.jobs()) Serve(job, now, actions);
  EndUnneeded(site, now, actions);
  for (const std::string& job_id : site.ended_jobs()) failures_.erase(job_id);
  return actions;
}

void BatchPlan::TakeQueue(const v1::SiteHeartbeatResponse& site, const std::vector<BatchJob>& queue, absl::Duration now,
                          Actions& actions) {
  std::set<std::string> waiting;
  for (const v1::SiteJob& job : site.jobs()) {
    if (!job.waiting_ranks().empty()) waiting.insert(job.job_id());
  }
  std::set<std::string> seen;
  for (const BatchJob& job : queue) {
    seen.insert(job.id);
    Known& known = known_[job.id];
    known.job = job;
    known.free = 0;
    if (job.state != BatchJob::State::kRuns) {
      known.runs_since = absl::InfiniteDuration();
      // Slurm may start it once more, with other workers.
      if (job.state == BatchJob::State::kWaits) known.had_workers = known.had_groups = false;
    } else if (known.runs_since == absl::InfiniteDuration()) {
      known.runs_since = now;
    }
  }
  for (auto it = known_.begin(); it != known_.end();) {
    const Known& known = it->second;
    const bool gone = seen.count(it->first) == 0;
    const bool told = known.ended_at != absl::InfiniteDuration();
    if (gone && !told && !known.had_groups && waiting.count(known.job.job_id) > 0) {
      actions.lost.push_back({known.job, known.had_workers ? Lost::Why::kNoGroup : Lost::Why::kNoWorkers});
    }
    it = gone ? known_.erase(it) : std::next(it);
  }
}

void BatchPlan::TakeWorkers(const v1::SiteHeartbeatResponse& site) {
  for (auto& [id, known] : known_) {
    const bool starts = known.job.state == BatchJob::State::kRuns && !known.had_workers;
    const bool ends = known.ended_at != absl::InfiniteDuration();
    if (!ends && (starts || known.job.state == BatchJob::State::kWaits)) known.free = known.job.ranks;
  }
  for (const v1::SiteJob& job : site.jobs()) {
    for (const v1::SiteWorker& worker : job.workers()) {
      const auto found = known_.find(BatchIdOf(worker.name()));
      if (found == known_.end()) continue;
      Known& known = found->second;
      if (!std::exchange(known.had_workers, true)) known.free = 0;  // From here on its workers' own slots count.
      if (known.ended_at != absl::InfiniteDuration()) continue;
      known.free += worker.slots() - std::min(worker.slots(), worker.slots_used());
      if (worker.slots_used() == 0) continue;
      known.had_groups = true;
      failures_.erase(known.job.job_id);
    }
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
    if (in_slurm + ranks > options_.ranks_max) {
      full_[job.job_id()] = absl::StrCat("this site has ", in_slurm, " ranks in Slurm, and may have ",
                                         options_.ranks_max, " (--slurm-ranks)");
      continue;
    }
    in_slurm += ranks;
    actions.submissions.push_back({job.job_id(), ranks, job.slurm()});
  }
}

void BatchPlan::EndUnneeded(const v1::SiteHeartbeatResponse& site, absl::Duration now, Actions& actions) {
  const std::set<std::string> ended(site.ended_jobs().begin(), site.ended_jobs().end());
  for (auto& [id, known] : known_) {
    if (known.job.state == BatchJob::State::kEnds) continue;
    if (known.ended_at != absl::InfiniteDuration()) {
      if (now - known.ended_at < options_.end_within) continue;
      known.ended_at = now;
      actions.ends.push_back({id, false});
      continue;
    }
    const bool waits = known.job.state == BatchJob::State::kWaits;
    const bool late = !waits && !known.had_workers && now - known.runs_since >= options_.workers_within;
    // Running ones end by themselves if they have nothing to do (--exit-idle). Meanwhile a group may start again there.
    const bool unused = waits && known.free == known.job.ranks;
    if (!late && !unused && ended.count(known.job.job_id) == 0) continue;
    known.ended_at = now;
    actions.ends.push_back({id, !waits});
    if (late) actions.lost.push_back({known.job, Lost::Why::kLateWorkers});
  }
}

void BatchPlan::Submitted(const Submission& submission, const std::string& id) {
  known_[id].job = {id, submission.job_id, submission.ranks, BatchJob::State::kWaits, "just submitted"};
}

void BatchPlan::Failed(const std::string& job_id, const std::string& why, absl::Duration now) {
  Failure& failure = failures_[job_id];
  failure.why = why;
  absl::Duration pause = options_.retry_min;
  for (int i = 0; i < failure.in_a_row && pause < options_.retry_max; ++i) pause *= 2;
  ++failure.in_a_row;
  failure.again_at = now + std::min(pause, options_.retry_max);
}

std::vector<v1::SiteNote> BatchPlan::Notes() const {
  std::map<std::string, std::vector<std::string>> texts;
  for (const auto& [job_id, failure] : failures_) texts[job_id].push_back(failure.why + "; it is tried again");
  for (const auto& [job_id, text] : full_) texts[job_id].push_back(text);
  // Job -> what its batch jobs wait for, or "" -> their ids.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> doing;
  for (const auto& [id, known] : known_) {
    if (known.ended_at != absl::InfiniteDuration() || known.job.state == BatchJob::State::kEnds) continue;
    const bool waits = known.job.state == BatchJob::State::kWaits;
    if (!waits && known.had_workers) continue;
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
  return jobs;
}

}  // namespace hooke
