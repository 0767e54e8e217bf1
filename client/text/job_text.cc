#include "client/text/job_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/text/time_text.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "job/metric.h"
#include "job/state_word.h"

namespace hooke {
namespace {

// Turns an enum's name into a word: "COMPRESSION_INT8" becomes "int8". A value from a newer coordinator becomes
// "unknown".
std::string Lower(const std::string& name, absl::string_view prefix) {
  absl::string_view rest = name;
  return absl::ConsumePrefix(&rest, prefix) ? absl::AsciiStrToLower(rest) : "unknown";
}

std::string Counted(uint32_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string DurationText(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds < 3600) return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string PercentText(double fraction) { return absl::StrFormat("%.2f %%", 100 * fraction); }

std::string GroupText(const v1::GroupStatus& group) {
  return group.task() == v1::GroupStart::EVALUATE ? "the evaluation" : absl::StrCat("group ", group.group());
}

std::string PlaceText(const v1::GroupStatus& group) {
  if (group.worker().empty()) return "";
  const auto part = [](std::string* text, const v1::GroupPart& one) {
    const uint32_t last = one.first_rank() + one.ranks() - 1;
    absl::StrAppend(text, Printable(one.worker()), one.ranks() == 1 ? " (rank " : " (ranks ", one.first_rank(),
                    one.ranks() == 1 ? "" : absl::StrCat("-", last), ")");
  };
  const std::string workers =
      group.parts().empty() ? Printable(group.worker()) : absl::StrJoin(group.parts(), " and ", part);
  return absl::StrCat(workers, " (", Printable(group.site()), ")");
}

std::string StepText(const v1::GroupStatus& group) {
  return group.has_progress() ? absl::StrCat(group.progress().step()) : "-";
}

namespace {

std::string WhoText(const v1::GroupStatus& group, const v1::Silence& silence) {
  const bool rank = absl::StartsWith(silence.what(), "rank");
  return absl::StrCat(Printable(silence.what()), rank ? absl::StrCat(" of ", GroupText(group)) : "");
}

}  // namespace

std::string SilenceText(const v1::GroupStatus& group, const v1::Silence& silence, absl::Time now, absl::TimeZone zone) {
  const absl::Time since = absl::FromUnixMillis(silence.since_unix_ms());
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(now - since));
  return absl::StrCat(WhoText(group, silence), " has not answered since ", TimeText(since, now, zone), " (", seconds,
                      " s), at step ", silence.step());
}

std::vector<JobSilence> Silences(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone) {
  std::vector<JobSilence> silences;
  for (const v1::GroupStatus& group : job.groups()) {
    for (const v1::Silence& silence : group.silences()) {
      JobSilence one;
      one.who = WhoText(group, silence);
      one.what = Printable(silence.what());
      one.since_unix_ms = silence.since_unix_ms();
      one.key = absl::StrCat(one.who, "@", silence.since_unix_ms());
      one.text = SilenceText(group, silence, now, zone);
      if (absl::c_none_of(silences, [&](const JobSilence& other) { return other.key == one.key; }))
        silences.push_back(std::move(one));
    }
  }
  return silences;
}

std::string SharesText(const v1::RankProgress& progress) {
  const double sum = progress.compute_seconds() + progress.collective_seconds() + progress.exchange_seconds();
  if (!(sum > 0) || !std::isfinite(sum)) return "";
  return absl::StrFormat("compute %.0f %%, collective %.0f %%, exchange %.0f %%",
                         100 * progress.compute_seconds() / sum, 100 * progress.collective_seconds() / sum,
                         100 * progress.exchange_seconds() / sum);
}

namespace {

// Servers that one group, or every group, misses in its exchanges.
struct Absence {
  std::string who;  // Empty, or for example "group 1".
  std::set<std::string> servers;
  int64_t since_unix_ms = std::numeric_limits<int64_t>::max();
};

std::vector<Absence> Absences(const v1::JobStatus& job) {
  std::vector<Absence> absences;
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.state() != v1::GROUP_STATE_RUNNING || group.progress().absent_servers().empty()) continue;
    Absence& absence = absences.emplace_back();
    absence.who = GroupText(group);
    for (const v1::AbsentServer& server : group.progress().absent_servers()) {
      absence.servers.insert(Printable(server.address()));
      absence.since_unix_ms = std::min(absence.since_unix_ms, server.since_unix_ms());
    }
  }
  return absences;
}

// Example: "exchanging with 1 of 2 servers since 12:03:04 (without 10.0.0.2:7411)".
std::string AbsenceText(const v1::JobStatus& job, const Absence& absence, absl::TimeZone zone) {
  const int64_t with = std::max<int64_t>(0, job.servers_size() - static_cast<int64_t>(absence.servers.size()));
  const absl::Time since = absl::FromUnixMillis(absence.since_unix_ms);
  return absl::StrCat("exchanging with ", with, " of ", Counted(job.servers_size(), "server"), " since ",
                      TimeText(since, absl::FromUnixMillis(job.now_unix_ms()), zone), " (without ",
                      absl::StrJoin(absence.servers, ", "), ")");
}

}  // namespace

std::string AbsentText(const v1::JobStatus& job, absl::TimeZone zone) {
  if (job.state() != v1::JOB_STATE_RUNNING) return "";
  const std::vector<Absence> absences = Absences(job);
  if (absences.empty()) return "";
  Absence first = absences[0];
  std::vector<std::string> each;
  for (const Absence& absence : absences) {
    each.push_back(absl::StrCat(absence.who, " ", AbsenceText(job, absence, zone)));
    first.since_unix_ms = std::min(first.since_unix_ms, absence.since_unix_ms);
  }
  const bool alike = absl::c_all_of(absences, [&](const Absence& other) { return other.servers == first.servers; });
  return alike ? AbsenceText(job, first, zone) : absl::StrJoin(each, "; ");
}

std::string OlderSetbackText(const v1::JobStatus& job, int first_shown, absl::TimeZone zone) {
  if (!job.has_setback()) return "";
  if (first_shown < job.notices_size() && job.notices(first_shown).unix_ms() <= job.setback().unix_ms()) return "";
  const absl::Time now = absl::FromUnixMillis(job.now_unix_ms());
  return absl::StrCat(TimeText(absl::FromUnixMillis(job.setback().unix_ms()), now, zone), "  ",
                      Printable(job.setback().text()));
}

std::optional<absl::Duration> TimeLeft(const v1::JobStatus& job) {
  if (job.state() != v1::JOB_STATE_RUNNING || job.groups().empty()) return std::nullopt;
  const std::vector<uint64_t> samples = SamplesOfGroups(job.spec());
  double longest = 0;
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.state() == v1::GROUP_STATE_FINISHED) continue;
    // A command has no batch size, so its rate says nothing about its steps.
    if (HasCommand(job.spec()) || group.group() >= samples.size()) return std::nullopt;
    const v1::RankProgress& progress = group.progress();
    const double left = static_cast<double>(progress.steps_total()) - static_cast<double>(progress.step());
    const double seconds = left * static_cast<double>(samples[group.group()]) / progress.samples_per_s();
    const bool moves =
        group.state() == v1::GROUP_STATE_RUNNING && group.silences().empty() && progress.steps_total() > 0;
    if (!moves || !(seconds >= 0) || seconds > 1e8) return std::nullopt;
    longest = std::max(longest, seconds);
  }
  return absl::Seconds(longest);
}

std::string CenterText(const v1::CenterEvaluated& center) {
  const bool knows = !std::isnan(center.accuracy());
  std::string text = knows ? absl::StrCat("test accuracy ", PercentText(center.accuracy()), " ") : "";
  absl::StrAppendFormat(&text, "at epoch %.2f", center.epoch());
  // A user's program may leave the loss out. It then reports no samples either.
  if (center.samples() > 0 || !std::isnan(center.loss())) absl::StrAppendFormat(&text, ", loss %.4f", center.loss());
  const std::string metrics = MetricsText(center.metrics());
  return metrics.empty() ? text : absl::StrCat(text, ", ", metrics);
}

std::string ReasonText(absl::string_view state, absl::string_view reason) {
  // Many reasons begin with the state that they explain.
  absl::ConsumePrefix(&reason, absl::StrCat(state, ": "));
  return reason.empty() || reason == state ? "" : absl::StrCat(": ", Printable(reason));
}

std::string CompressionText(const v1::AveragingSpec& spec) {
  if (spec.compression() == v1::AveragingSpec::COMPRESSION_UNSPECIFIED) return "none";
  return Lower(v1::AveragingSpec::Compression_Name(spec.compression()), "COMPRESSION_");
}

std::string AveragingText(const v1::AveragingSpec& spec) {
  if (spec.rule() == v1::AveragingSpec::NONE) return "no averaging";
  std::string text = Lower(v1::AveragingSpec::Rule_Name(spec.rule()), "");
  if (spec.interval_seconds() > 0) {
    absl::StrAppend(&text, " every ", spec.interval_seconds(), " s");
  } else {
    absl::StrAppend(&text, spec.interval_auto() ? " at most every " : " every ", Counted(spec.interval(), "step"));
  }
  if (spec.fragments() > 1) absl::StrAppend(&text, " in ", spec.fragments(), " fragments");
  if (spec.delay() > 0) absl::StrAppend(&text, ", delayed by ", spec.delay());
  if (spec.compression() > v1::AveragingSpec::COMPRESSION_NONE) absl::StrAppend(&text, ", ", CompressionText(spec));
  return text;
}

std::string SpecText(const v1::JobSpec& spec) {
  return absl::StrCat(Printable(TrainedText(spec)), ", ", Printable(GroupsText(spec)), ", ",
                      AveragingText(spec.averaging()));
}

std::string JobProgressText(const v1::JobStatus& job, absl::Time now) {
  const bool ended = HasEnded(job.state());
  const int64_t begin = job.started_unix_ms() != 0 ? job.started_unix_ms() : job.submitted_unix_ms();
  const absl::Time end = ended ? absl::FromUnixMillis(job.ended_unix_ms()) : now;
  const bool show_reason = job.state() != v1::JOB_STATE_RUNNING && job.state() != v1::JOB_STATE_SUCCEEDED;
  return absl::StrCat(JobStateText(job.state()), ended ? " after " : " for ",
                      DurationText(end - absl::FromUnixMillis(begin)),
                      show_reason ? ReasonText(JobStateText(job.state()), job.reason()) : "");
}

}  // namespace hooke
