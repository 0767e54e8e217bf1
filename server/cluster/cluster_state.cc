#include "server/cluster/cluster_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_defaults.h"
#include "job/job_state.h"
#include "job/visible_text.h"
#include "server/cluster/job_spec_check.h"
#include "server/cluster/shortened.h"
#include "server/cluster/tally.h"

namespace hooke {
namespace {

// The cause of a failure is logged again after at most this long. A stopped group has ended by then, unless its
// processes hang in the kernel.
constexpr absl::Duration kLastWordsWithin = absl::Seconds(30);

const char* EndVerb(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_SUCCEEDED:
      return "succeeded";
    case v1::JOB_STATE_FAILED:
      return "failed";
    default:
      return "cancelled";
  }
}

// Returns the group's GroupRecord.end_progress.
std::string EndProgress(const GroupRecord& group, const known::LiveGroup& live) {
  if (IsPlaced(group.state) || !live.has_progress) return "";
  v1::RankProgress progress = live.progress;
  progress.clear_absent_servers();
  return progress.SerializeAsString();
}

std::string EndText(const JobRecord& job) { return absl::StrCat("job ", EndVerb(job.state), ": ", job.reason); }

}  // namespace

ClusterState::ClusterState(ClusterStateOptions options, StoredJobs stored, Instant now)
    : options_(std::move(options)),
      workers_(options_.liveness),
      rooms_(options_.liveness.silent_after, options_.avoid),
      servers_(options_.liveness),
      uses_(options_.fair_half_life),
      last_tick_(now.steady) {
  for (ForgottenJob& job : stored.forgotten) jobs_.KeepTrace(std::move(job));
  for (JobRecord& stored_job : stored.jobs) {
    Job& job = jobs_.Add(std::move(stored_job));
    const JobRecord& record = job.record;
    for (const GroupRecord& group : record.groups) {
      LiveGroup& live = job.live[group.group];
      live.furthest_step = group.best_step;
      live.has_progress = !group.end_progress.empty() && live.progress.ParseFromString(group.end_progress);
      if (HasEnded(record.state) || !IsPlaced(group.state)) continue;
      for (const GroupPart& part : group.parts) {
        if (part.ended) continue;
        Worker& worker = workers_.Add(part.worker, now);
        worker.site = group.site;
        worker.occupants[{record.job_id, group.group, group.incarnation}] = part.ranks;
      }
    }
    if (!HasEnded(record.state)) {
      for (const JobServer& shard : record.servers) servers_.AddUnheard(shard, now);
    } else {
      // The steady clock of the last process is gone, so the wall clock says how long ago the job ended.
      const absl::Duration ago = now.wall - absl::FromUnixMillis(record.ended_unix_ms);
      job.ended_at = now.steady - std::max(ago, absl::ZeroDuration());
    }
    if (!record.generations.earlier.empty()) job.resized_at = now.steady;
    if (record.generations.wanted.has_value()) changing_jobs_.insert(record.number);
  }
  for (const WorkerDrain& drain : stored.drains) {
    workers_.Add(drain.worker, now).drain = drain.drain;
  }
  for (const auto& [name, worker] : workers_) workers_.Expect(worker);
  uses_.Load(stored.uses, now);
  for (auto& [number, job] : jobs_) {
    if (!HasEnded(job.record.state)) effects_.Log(job.record.job_id, "the coordinator started again", now);
  }
}

absl::StatusOr<ClusterState::Submission> ClusterState::BeginSubmit(const v1::SubmitRequest& request, Instant now) {
  const std::string& id = request.submission_id();
  if (id.empty() || id.size() > 128) {
    return absl::InvalidArgumentError(absl::StrCat("submission_id has ", id.size(), " bytes, allowed is 1 to 128"));
  }
  if (std::string known = jobs_.IdOfSubmission(id); !known.empty()) return Submission{std::move(known), false};
  if (being_stored_.count(id) > 0) return absl::UnavailableError("this submission is being stored: try again");
  const v1::JobSpec spec = FillDefaults(request.job());
  absl::Status status = CheckJobSpec(spec);
  if (status.ok() && HasCommand(spec) && !options_.reached_by_others_at.empty()) {
    status = absl::FailedPreconditionError(absl::StrCat(
        "jobs with a command are refused: the coordinator listens at ", options_.reached_by_others_at,
        ", where other machines reach it, and whoever reaches it could run any program on its workers. Give "
        "every program of the cluster a token with --token-file, start hooke-server with --listen=127.0.0.1:PORT, or "
        "use `hooke up` or `hooke run`"));
  }
  if (status.ok()) status = CheckRoomFor(spec);
  if (status.ok()) status = CheckQuota(spec);
  if (status.ok()) status = CheckWorkersFor(spec);
  if (!status.ok()) return status;

  JobRecord& job = effects_.submissions.emplace_back();
  job.number = jobs_.TakeNumber();
  job.job_id = absl::StrCat(spec.name(), "-", job.number);
  job.submission_id = id;
  job.spec = spec;
  job.reason = "just submitted";
  job.submitted_unix_ms = absl::ToUnixMillis(now.wall);
  job.preparing_us = request.preparing_us();
  job.upload_us = request.upload_us();
  for (uint32_t i = 0; i < job.spec.groups().count(); ++i) {
    GroupRecord group;
    group.group = i;
    group.reason = job.reason;
    job.groups.push_back(std::move(group));
  }
  being_stored_.insert(id);
  return Submission{job.job_id, true};
}

absl::Status ClusterState::CheckWorkersFor(const v1::JobSpec& spec) const {
  const auto counts = [this](const Worker& worker) {
    // A batch system gives as large workers as it is asked for.
    return !worker.lost && worker.slots > 0 && worker.only_job.empty() && !sites_.Has(worker.site);
  };
  // Usually one worker is large enough for each kind. Then the list of workers below need not be made.
  const std::vector<v1::GroupKind> kinds = KindsOf(spec);
  const bool fits = std::all_of(kinds.begin(), kinds.end(), [&](const v1::GroupKind& kind) {
    return std::any_of(workers_.begin(), workers_.end(), [&](const auto& named) {
      const Worker& worker = named.second;
      return worker.slots >= kind.ranks() && (kind.site().empty() || worker.site == kind.site()) &&
             GpusFit(kind.gpus_per_rank(), worker.slots, worker.gpus) && counts(worker);
    });
  });
  if (fits) return absl::OkStatus();
  std::vector<FreeWorker> workers;
  for (const auto& [name, worker] : workers_) {
    if (counts(worker)) workers.push_back(WholeWorker(worker));
  }
  return CheckRanksFit(spec, workers);
}

absl::Status ClusterState::CheckRoomFor(const v1::JobSpec& spec) {
  size_t jobs = being_stored_.size();
  size_t bytes = spec.ByteSizeLong();
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    ++jobs;
    bytes += TallyOf(job).spec_bytes;
  }
  if (jobs < options_.unfinished_jobs_max && bytes <= options_.unfinished_bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(jobs, " jobs wait or run already, and the coordinator takes at most ", options_.unfinished_jobs_max,
                   " of at most ", options_.unfinished_bytes_max >> 20,
                   " MiB: wait until some have ended, or cancel some with `hooke cancel`"));
}

void ClusterState::EndSubmit(const JobRecord& record, bool stored, Instant now) {
  being_stored_.erase(record.submission_id);
  if (!stored) return;
  Job& job = jobs_.Add(record);
  Changed(job);
  effects_.Log(job.record.job_id,
               absl::StrCat("job submitted: ", TrainedText(record.spec), ", ", GroupsText(record.spec)), now);
  Place(now);
}

absl::Status ClusterState::Cancel(const std::string& job_id, Instant now) {
  Job* job = jobs_.Find(job_id);
  if (job == nullptr) return jobs_.CheckKnown(job_id);
  if (HasEnded(job->record.state)) return absl::OkStatus();
  EndJob(*job, v1::JOB_STATE_CANCELLED, "cancelled by the user", now);
  Place(now);
  return absl::OkStatus();
}

bool ClusterState::LogHasEnded(const std::string& job_id) const {
  const Job* job = jobs_.Find(job_id);
  return job != nullptr && HasEnded(job->record.state) && last_words_due_.count(job_id) == 0;
}

std::vector<v1::NodeStatus> ClusterState::Nodes(Instant now) const {
  std::vector<v1::NodeStatus> nodes = servers_.Statuses(now);
  for (const auto& [name, worker] : workers_) nodes.push_back(StatusOf(worker, workers_, options_.avoid, now));
  return nodes;
}

void ClusterState::Store(Job& job) {
  for (GroupRecord& group : job.record.groups) group.end_progress = EndProgress(group, job.live[group.group]);
  effects_.jobs.insert(job.record.job_id);
  job.tally.fresh = false;
  Changed(job);
}

void ClusterState::Notice(Job& job, absl::string_view text, Instant now) {
  v1::Notice notice;
  notice.set_unix_ms(absl::ToUnixMillis(now.wall));
  notice.set_text(Shortened(text));
  job.notices.push_back(std::move(notice));
  while (job.notices.size() > kNoticesMax) job.notices.pop_front();
  Changed(job);
  effects_.Log(job.record.job_id, text, now);
}

void ClusterState::EndGroup(Job& job, GroupRecord& group, const GroupOutcome& outcome, Instant now) {
  GroupOutcome compared = outcome;
  compared.cause = CauseOfEnd(group, outcome);
  if (!job.record.generations.earlier.empty()) compared.began_at = job.record.generations.first_step;
  const GroupDecision decision = AfterGroupEnd(group, compared, options_.restart);
  if (WillStart(decision.state)) NoteFailure(job, group, outcome, now);
  ApplyGroupDecision(job, group, decision, now);
}

void ClusterState::LoseGroup(Job& job, GroupRecord& group, absl::string_view why, Instant now) {
  LiveGroup& live = job.live[group.group];
  live.server_failures = 0;
  GroupLoss loss;
  loss.why = std::string(why);
  loss.step = live.furthest_step;
  if (live.first_work.has_value()) loss.worked = live.last_work - *live.first_work;
  ApplyGroupDecision(job, group, AfterGroupLost(group, loss, options_.restart), now);
}

void ClusterState::ApplyGroupDecision(Job& job, GroupRecord& group, const GroupDecision& decision, Instant now) {
  LiveGroup& live = job.live[group.group];
  group.state = decision.state;
  group.reason = decision.reason;
  group.failures = decision.failures;
  group.best_step = decision.best_step;
  rooms_.Changed(group);
  NoteCause(live, group, decision);
  live.retry_at = now.steady + decision.wait;
  PlaceSoon();
  live.cut_off.reset();
  live.silences.clear();
  live.outcome_so_far.reset();
  if (group.parts.size() > 1) StopParts(job, group, absl::StrCat("the group ended: ", decision.reason));
  const std::string text =
      absl::StrCat("group ", group.group, " at step ", live.progress.step(), ": ", decision.reason);
  if (decision.state == v1::GROUP_STATE_FINISHED) effects_.Log(job.record.job_id, text, now);
  // If the group failed for good, there is no notice here: the job's end gives the same reason.
  if (WillStart(decision.state)) Notice(job, text, now);
  Store(job);
  ApplyJobDecision(job, now);
}

void ClusterState::ApplyJobDecision(Job& job, Instant now) {
  const JobDecision decision = AfterGroupChange(job.record);
  if (decision.state == v1::JOB_STATE_UNSPECIFIED) return;
  if (HasEnded(decision.state)) return EndJob(job, decision.state, decision.reason, now);
  job.record.state = decision.state;
  job.record.reason = decision.reason;
  if (decision.state == v1::JOB_STATE_RUNNING && job.record.started_unix_ms == 0) {
    job.record.started_unix_ms = absl::ToUnixMillis(now.wall);
  }
  if (decision.start_evaluation) {
    GroupRecord evaluation;
    evaluation.group = static_cast<uint32_t>(job.record.groups.size());
    evaluation.task = v1::GroupStart::EVALUATE;
    // A group of an earlier generation may have had its number. No start is to have the incarnation of another one.
    for (const GroupRecord& group : job.record.groups) {
      evaluation.incarnation =
          std::max(evaluation.incarnation, job.record.generations.earlier.empty() ? 0 : group.incarnation);
    }
    evaluation.reason = "all groups have just finished";
    job.record.groups.push_back(std::move(evaluation));
    job.live.emplace_back();
    PlaceSoon();
  }
  effects_.Log(job.record.job_id, absl::StrCat("job: ", decision.reason), now);
  Store(job);
}

void ClusterState::EndJob(Job& job, v1::JobState state, absl::string_view reason, Instant now) {
  job.record.state = state;
  job.record.reason = Shortened(reason);
  job.record.ended_unix_ms = absl::ToUnixMillis(now.wall);
  job.ended_at = now.steady;
  for (GroupRecord& group : job.record.groups) {
    job.live[group.group].silences.clear();
    rooms_.Changed(group);
    if (!IsPlaced(group.state) && !WillStart(group.state)) continue;
    group.state = v1::GROUP_STATE_CANCELLED;
    group.reason = state == v1::JOB_STATE_CANCELLED ? "the job was cancelled" : "the job has ended";
  }
  Notice(job, EndText(job.record), now);
  StopOccupants(job.record.job_id, absl::StrCat("the job has ended: ", EndVerb(state)));
  AwaitLastWords(job, now);
  Store(job);
}

void ClusterState::AwaitLastWords(const Job& job, Instant now) {
  const JobRecord& record = job.record;
  const bool recent = now.steady - job.ended_at < kLastWordsWithin;
  if (record.state != v1::JOB_STATE_FAILED || !recent || !workers_.MayRun(record.job_id)) return;
  last_words_due_.insert(record.job_id);
}

// Logs the cause of a failed job once more, after its stopped groups have ended. These still print while they end, and
// users look for the cause at the end of the log.
void ClusterState::SayLastWords(Instant now) {
  for (auto it = last_words_due_.begin(); it != last_words_due_.end();) {
    const Job* job = jobs_.Find(*it);
    const bool waits = job != nullptr && workers_.MayRun(*it) && now.steady - job->ended_at < kLastWordsWithin;
    if (!waits && job != nullptr) effects_.Log(job->record.job_id, EndText(job->record), now);
    it = waits ? std::next(it) : last_words_due_.erase(it);
  }
}

void ClusterState::StopOccupants(const std::string& job_id, absl::string_view reason) {
  for (auto& [name, worker] : workers_) {
    if (worker.session == 0) continue;  // TakeOver stops the worker's groups when the worker says hello again.
    for (const auto& [key, ranks] : worker.occupants) {
      if (key.job_id != job_id) continue;
      effects_.SendStop(worker.session, key, reason);
    }
  }
}

}  // namespace hooke
