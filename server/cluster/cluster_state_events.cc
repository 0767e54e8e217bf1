// ClusterState: the events that workers report about their groups.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/rule_facts.h"
#include "job/metric.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/profile_check.h"
#include "server/cluster/shortened.h"
#include "server/cluster/start_times.h"
#include "wire/steps.h"
#include "wire/utc_time.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

// The most silent peers that are kept of one group. A worker's report of a further silent rank becomes a notice only.
constexpr size_t kSilencesMax = 64;
constexpr size_t kLogLineBytesMax = 8192;  // The limit that LogLines (proto/coordinator.proto) states.

// The time from one write of a job's exchanged steps to the next.
constexpr absl::Duration kStoreSteps = absl::Seconds(10);

bool IsAddressOf(const std::vector<JobServer>& servers, const std::string& address) {
  return std::any_of(servers.begin(), servers.end(),
                     [&address](const JobServer& server) { return server.address == address; });
}

// Returns whether the rank gave up because of a server of its job. The report then names that server. The code alone
// does not tell: ranks whose peer is gone report UNAVAILABLE too, and so do daemons whose ranks died without a word.
bool LacksServer(const v1::RankFailed& failed, const std::vector<JobServer>& servers) {
  const auto code = static_cast<absl::StatusCode>(failed.code());
  if (code != absl::StatusCode::kUnavailable && code != absl::StatusCode::kDeadlineExceeded) return false;
  return IsAddressOf(servers, failed.server());
}

// Example: "center test accuracy 88.12 %, loss 0.3333, 10000 samples, at step 7, epoch 1.00". A user's program may know
// only some of that, or metrics of its own instead.
std::string EvaluationText(const v1::CenterEvaluated& result) {
  std::vector<std::string> parts;
  if (!std::isnan(result.accuracy()))
    parts.push_back(absl::StrFormat("test accuracy %.2f %%", 100 * result.accuracy()));
  if (result.samples() > 0) {
    parts.push_back(absl::StrFormat("loss %.4f", result.loss()));
    parts.push_back(absl::StrCat(result.samples(), " samples"));
  }
  if (!result.metrics().empty()) parts.push_back(MetricsText(result.metrics()));
  parts.push_back(absl::StrFormat("at step %d, epoch %.2f", result.step(), result.epoch()));
  return absl::StrCat("center ", absl::StrJoin(parts, ", "));
}

// Returns the times of the group's present start; null if there are none.
PackedStart* TimesOf(GroupRecord& group) {
  if (group.starts.empty() || group.starts.back().incarnation() != group.incarnation) return nullptr;
  return &group.starts.back();
}

constexpr size_t kLastLinesMax = 10;  // The limit that GroupStatus.last_lines states.
constexpr size_t kLastLineBytesMax = 400;

// Lines begin with their source: "group 0 rank 1: ...", "group 0 mpirun: ...".
bool IsOfRank(absl::string_view line) { return absl::StrContains(line.substr(0, line.find(':')), " rank "); }

// Keeps the line among the last ones that the group printed. After the words of a rank, mpirun prints a page that says
// no more, so its lines are left out.
void KeepLine(known::LiveGroup& live, absl::string_view line) {
  if (!IsOfRank(line) && !live.last_lines.empty() && IsOfRank(live.last_lines.back())) return;
  live.last_lines.push_back(Shortened(line, kLastLineBytesMax));
  if (live.last_lines.size() > kLastLinesMax) live.last_lines.pop_front();
}

}  // namespace

void ClusterState::Event(Worker& worker, const v1::GroupEvent& event, Instant now) {
  const GroupKey key = KeyOf(event.group());
  // Stale events are acknowledged too, so that the worker can forget them.
  uint64_t& seen = effects_.seen[{worker.session, key}];
  seen = std::max(seen, event.number());
  if (event.event_case() == v1::GroupEvent::kEnded) {
    worker.occupants.erase(key);
    rooms_.Changed(worker.name);
    worker.unconfirmed.erase(key);
  }
  Job* job = jobs_.Find(key.job_id);
  const AdoptionDecision current = AdoptGroup(key, worker.name, job == nullptr ? nullptr : &job->record);
  if (current.what == Adoption::kAdopt) {
    GroupRecord& group = job->record.groups[key.group];
    GroupPart& part = *PartOn(group, worker.name);
    if (event.number() > part.last_event) {
      part.last_event = event.number();
      ApplyEvent(*job, group, part, event, now);
    }
  }
  if (event.event_case() == v1::GroupEvent::kEnded) {
    SayLastWords(now);
    Place(now);
  }
}

void ClusterState::ApplyEvent(Job& job, GroupRecord& group, GroupPart& part, const v1::GroupEvent& event, Instant now) {
  switch (event.event_case()) {
    case v1::GroupEvent::kStarted:
      ApplyStarted(job, group, part, event, now);
      effects_.Log(job.record.job_id,
                   absl::StrCat("group ", group.group, " started",
                                group.parts.size() > 1 ? absl::StrCat(" on worker ", part.worker) : "",
                                " (launcher pid ", event.started().launcher_pid(), ")"),
                   now);
      return;
    case v1::GroupEvent::kReport:
      if (event.report().event().has_begun()) return ApplyBegun(job, group, part, event, now);
      return ApplyReport(job, group, part, event.report(), now);
    case v1::GroupEvent::kReady:
      return PartIsReady(job, group, part, now);
    case v1::GroupEvent::kRemote:
      return StartRemotePart(job, group, part, event.remote(), now);
    case v1::GroupEvent::kSilence:
      return ApplySilence(job, group, event.silence(), now);
    case v1::GroupEvent::kEnded: {
      GroupOutcome outcome;
      outcome.ok = event.ended().ok();
      const int code = event.ended().code();
      const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
      outcome.code = known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
      outcome.message = Shortened(event.ended().message());
      LiveGroup& live = job.live[group.group];
      if (!outcome.ok && !live.leaves.empty() && MendsItself(outcome.code)) return Leave(job, group, now);
      outcome.step = live.furthest_step;
      if (!live.lacks_server || outcome.step > group.best_step) live.server_failures = 0;
      if (live.lacks_server) ++live.server_failures;
      outcome.server_failures = live.server_failures;
      if (group.parts.size() > 1) return EndPart(job, group, part, outcome, now);
      return EndGroup(job, group, outcome, now);
    }
    default:
      effects_.LogDaemon(
          absl::StrCat("an event of group ", group.group, " of ", job.record.job_id, " says nothing: ignored"), now);
  }
}

void ClusterState::ApplyStarted(Job& job, GroupRecord& group, const GroupPart& part, const v1::GroupEvent& event,
                                Instant now) {
  PackedStart* packed = TimesOf(group);
  if (packed == nullptr || &part != &group.parts[0]) return;
  v1::StartTimes times = packed->Unpack();
  AddPrepared(event.started(), HappenedAt(event.unix_us(), absl::ToUnixMicros(now.wall), times), times);
  *packed = PackedStart(times);
  Store(job);
}

void ClusterState::ApplyBegun(Job& job, GroupRecord& group, const GroupPart& part, const v1::GroupEvent& event,
                              Instant now) {
  PackedStart* packed = TimesOf(group);
  if (packed == nullptr || event.report().rank() != 0 || part.first_rank != 0) return;
  v1::StartTimes times = packed->Unpack();
  const int64_t at = HappenedAt(event.unix_us(), absl::ToUnixMicros(now.wall), times);
  if (!AddBegun(event.report().event().begun(), at, times)) return;
  *packed = PackedStart(times);
  Store(job);
}

void ClusterState::ApplyReport(Job& job, GroupRecord& group, const GroupPart& part, const v1::RankReport& report,
                               Instant now) {
  if (report.rank() < part.first_rank || report.rank() - part.first_rank >= part.ranks) {
    effects_.LogDaemon(absl::StrCat("group ", group.group, " of ", job.record.job_id, " has no rank ", report.rank(),
                                    " on worker ", part.worker, ": ignored"),
                       now);
    return;
  }
  const v1::RankEvent& event = report.event();
  const std::string who = absl::StrCat("group ", group.group, " rank ", report.rank());
  switch (event.event_case()) {
    case v1::RankEvent::kProgress:
      ApplyAbsent(job, group, report);
      if (report.rank() == 0) {
        ApplyProgress(job, group, event.progress(), now);
      } else if (group.task == v1::GroupStart::TRAIN) {
        // If rank 0 dies without a word, another rank says how far the group came.
        uint64_t& furthest = job.live[group.group].furthest_step;
        furthest = std::max(furthest, event.progress().step());
      }
      return;
    case v1::RankEvent::kEvaluated:
      if (report.rank() == 0) ApplyEvaluated(job, group, event.evaluated(), now);
      return;
    case v1::RankEvent::kProfile:
      return ApplyProfile(job, group, report, now);
    case v1::RankEvent::kLinks:
      return ApplyLinks(group, part, event.links(), now);
    case v1::RankEvent::kNotice:
      Notice(job, absl::StrCat(who, ": ", Shortened(event.notice().text())), now);
      if (event.notice().setback()) job.setback = job.notices.back();
      return;
    case v1::RankEvent::kFailed:
      if (LacksServer(event.failed(), job.record.servers)) job.live[group.group].lacks_server = true;
      if (job.live[group.group].failed_on.empty()) job.live[group.group].failed_on = part.worker;
      return effects_.Log(job.record.job_id, absl::StrCat(who, " failed: ", Shortened(event.failed().message())), now);
    case v1::RankEvent::kHello:
      return effects_.Log(job.record.job_id,
                          absl::StrCat(who, " is there (pid ", event.hello().pid(),
                                       group.parts.size() > 1 ? absl::StrCat(" on ", part.worker) : "", ")"),
                          now);
    case v1::RankEvent::kDone:
      return effects_.Log(job.record.job_id, absl::StrCat(who, " is done at step ", event.done().step()), now);
    default:
      return;
  }
}

// Stores which servers a rank misses. A rank knows only of the servers with which it exchanges itself, so each rank's
// list is kept.
void ClusterState::ApplyAbsent(Job& job, GroupRecord& group, const v1::RankReport& report) {
  std::vector<v1::AbsentServer> absent;
  for (const v1::AbsentServer& server : report.event().progress().absent_servers()) {
    const std::vector<JobServer>& servers = job.record.servers;
    if (!IsAddressOf(servers, server.address())) continue;
    if (absent.size() < servers.size()) absent.push_back(server);
  }
  // Most ranks miss nothing. They get no entry, because each status looks at all entries.
  std::map<uint32_t, std::vector<v1::AbsentServer>>& known = job.live[group.group].absent;
  if (absent.empty() && known.erase(report.rank()) == 0) return;
  if (!absent.empty()) known[report.rank()] = std::move(absent);
  Changed(job);
}

// Returns the report as users see it: with the group's staleness, and without numbers that no rank may send.
v1::RankProgress ClusterState::Completed(Job& job, const GroupRecord& group, const v1::RankProgress& progress,
                                         Instant now) {
  v1::RankProgress completed = progress;
  *completed.mutable_metrics() = AllowedMetrics(progress.metrics());
  const double distance = progress.center_distance();
  if (!std::isfinite(distance) || distance < 0) completed.clear_center_distance();
  completed.clear_staleness();
  const std::optional<RuleName> rule = RuleOf(static_cast<uint32_t>(job.record.spec.averaging().rule()));
  const bool has_staleness = rule.has_value() && FactsOf(*rule).shares && !InRounds(*rule);
  if (!has_staleness || group.task != v1::GroupStart::TRAIN) return completed;
  const uint64_t succeeded = progress.exchanges() - std::min(progress.exchanges(), progress.exchange_failures());
  const std::optional<double> staleness = job.staleness.Report({group.group, group.incarnation, succeeded}, now.steady);
  if (staleness.has_value()) completed.set_staleness(*staleness);
  return completed;
}

void ClusterState::ApplyProgress(Job& job, GroupRecord& group, const v1::RankProgress& reported, Instant now) {
  LiveGroup& live = job.live[group.group];
  const v1::RankProgress progress = Completed(job, group, reported, now);
  AddPoint(job, group, progress, now);
  live.progress = progress;
  live.has_progress = true;
  rooms_.Changed(group);
  Changed(job);
  const bool trains = group.task == v1::GroupStart::TRAIN;
  if (trains) {
    live.furthest_step = std::max(live.furthest_step, progress.step());
    NoteExchanged(job, group, progress, now);
  }
  const bool works = trains ? progress.phase() > v1::RankProgress::ATTACHING && progress.step() > 0
                            : progress.phase() >= v1::RankProgress::EVALUATING;
  if (!works) return;
  if (trains) NoteWork(job, group, progress, now);
  live.last_work = now.steady;
  if (!live.first_work.has_value()) {
    live.first_work = now.steady;
    live.first_work_step = progress.step();
  }
  if (group.state == v1::GROUP_STATE_STARTING) {
    group.state = v1::GROUP_STATE_RUNNING;
    group.reason = "running";
    Store(job);
    const bool first_start = group.is_new && group.incarnation == job.record.generations.first_incarnation;
    if (group.incarnation > 1 && !first_start) {
      Notice(job,
             absl::StrCat("group ", group.group, " trains again, and is at step ", progress.step(), " (start ",
                          group.incarnation, ")"),
             now);
    }
  }
  if (trains && job.record.first_step_unix_ms == 0) {
    job.record.first_step_unix_ms = absl::ToUnixMillis(now.wall);
    effects_.Log(job.record.job_id,
                 absl::StrCat("first step, ", (job.record.first_step_unix_ms - job.record.submitted_unix_ms) / 1000.0,
                              " s after submit"),
                 now);
    Store(job);
  }
}

// A start may go on from an earlier step than the last one had exchanged: a server came back with a snapshot, or the
// group with its kept values. The step is stored every few seconds. It counts after a restart of the coordinator, too,
// if no server says how far the group came.
void ClusterState::NoteExchanged(Job& job, GroupRecord& group, const v1::RankProgress& progress, Instant now) {
  const uint64_t step = std::min(progress.exchanged_step(), progress.step());
  if (step == 0 || step > kStepMax) return;
  group.exchanged_step = std::max(step, job.record.generations.first_step);
  if (now.steady < job.steps_stored + kStoreSteps) return;
  job.steps_stored = now.steady;
  Store(job);
}

// Adds the report to the job's history. It comes before the report replaces the one before it.
void ClusterState::AddPoint(Job& job, const GroupRecord& group, const v1::RankProgress& progress, Instant now) {
  if (group.task != v1::GroupStart::TRAIN || progress.step() == 0) return;
  // Zeros before the first report: the counters begin with the incarnation.
  const v1::RankProgress& before = job.live[group.group].progress;
  HistoryPoint point;
  point.unix_ms = absl::ToUnixMillis(now.wall);
  point.step = progress.step();
  point.epoch = progress.epoch();
  point.loss = progress.loss();
  point.samples_per_s = progress.samples_per_s();
  if (progress.exchanges() > before.exchanges()) {
    const double seconds = std::max(0.0, progress.exchange_seconds() - before.exchange_seconds());
    point.exchange_ms = 1000 * seconds / static_cast<double>(progress.exchanges() - before.exchanges());
  }
  if (progress.has_center_distance()) point.center_distance = progress.center_distance();
  if (progress.has_staleness()) point.staleness = progress.staleness();
  point.computing_ms = StoredMilliseconds(progress.compute_seconds());
  point.collectives_ms = StoredMilliseconds(progress.collective_seconds());
  point.exchanging_ms = StoredMilliseconds(progress.exchange_seconds());
  effects_.points.push_back({job.record.job_id, job.record.spec.groups().count(), group.group, point});
}

void ClusterState::ApplyEvaluated(Job& job, GroupRecord& group, const v1::CenterEvaluated& result, Instant now) {
  job.record.center = result;
  *job.record.center->mutable_metrics() = AllowedMetrics(result.metrics());
  group.evaluated = true;
  Notice(job, EvaluationText(*job.record.center), now);
  HistoryPoint point;
  point.unix_ms = absl::ToUnixMillis(now.wall);
  point.step = result.step();
  point.epoch = result.epoch();
  point.loss = result.loss();
  point.accuracy = result.accuracy();
  effects_.points.push_back({job.record.job_id, job.record.spec.groups().count(), kCenterSeries, point});
  Store(job);
}

void ClusterState::ApplyProfile(Job& job, GroupRecord& group, const v1::RankReport& report, Instant now) {
  if (group.task != v1::GroupStart::TRAIN) return;
  const v1::RankProfile& profile = report.event().profile();
  if (absl::Status status = CheckProfile(profile); !status.ok()) {
    effects_.LogDaemon(absl::StrCat("group ", group.group, " rank ", report.rank(), " of ", job.record.job_id, ": ",
                                    status.message(), ": ignored"),
                       now);
    return;
  }
  // The profile is serialized here, because a copy of a message with a thousand events would cost several times as
  // much.
  effects_.profiles[{job.record.job_id, group.group, report.rank()}] = profile.SerializeAsString();
}

void ClusterState::ApplyLinks(const GroupRecord& group, const GroupPart& part, const v1::MeasuredLinks& links,
                              Instant now) {
  for (int i = 0; i < std::min(links.links_size(), kLinksMax); ++i) {
    const v1::MeasuredLink& measured = links.links(i);
    const auto peer = std::find_if(group.parts.begin(), group.parts.end(), [&measured](const GroupPart& other) {
      return measured.peer_rank() >= other.first_rank && measured.peer_rank() - other.first_rank < other.ranks;
    });
    if (peer == group.parts.end()) continue;
    v1::NodeLink link;
    link.set_from(part.worker);
    link.set_to(peer->worker);
    link.set_round_trip_seconds(measured.round_trip_seconds());
    link.set_bytes_per_second(measured.bytes_per_second());
    link.set_measured_unix_ms(absl::ToUnixMillis(now.wall));
    links_.Add(link);
  }
}

void ClusterState::ApplySilence(Job& job, GroupRecord& group, const v1::SilenceChanged& change, Instant now) {
  const std::string what = Shortened(change.silence().what(), 256);
  RemoveSilence(job, group, what);
  if (!change.silent()) return Notice(job, absl::StrCat("group ", group.group, ": ", what, " answers again"), now);
  LiveGroup& live = job.live[group.group];
  if (live.silences.size() < kSilencesMax) {
    live.silences.push_back(change.silence());
    live.silences.back().set_what(what);
  }
  Notice(job,
         absl::StrCat("group ", group.group, ": ", what, " has not answered since ",
                      UtcText(absl::FromUnixMillis(change.silence().since_unix_ms())), ", at step ",
                      change.silence().step()),
         now);
}

// Logs the lines of a group's output. A worker may write only into the logs of jobs whose groups it may be running.
void ClusterState::TakeLog(const Worker& worker, const v1::LogLines& lines, Instant now) {
  const GroupKey key = KeyOf(lines.group());
  Job* job = jobs_.Find(key.job_id);
  if (worker.occupants.count(key) == 0 || job == nullptr) return;
  const bool current = key.group < job->live.size() && job->record.groups[key.group].incarnation == key.incarnation;
  for (const std::string& line : lines.lines()) {
    if (current) KeepLine(job->live[key.group], line);
    effects_.log.push_back({key.job_id, Shortened(line, kLogLineBytesMax), now.wall, false});
  }
}

}  // namespace hooke
