#include "client/text/job_details.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"
#include "client/text/time_text.h"
#include "job/file_manifest.h"
#include "job/job_state.h"
#include "job/metric.h"
#include "job/state_word.h"

namespace hooke {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Example: "14:03:05 (0:42 ago)"; "-" for a time that has not come.
std::string WhenText(int64_t unix_ms, absl::Time now, absl::TimeZone zone) {
  if (unix_ms == 0) return "-";
  const absl::Time time = absl::FromUnixMillis(unix_ms);
  return absl::StrCat(TimeText(time, now, zone), " (", DurationText(now - time), " ago)");
}

std::string DoneLine(const v1::JobStatus& job) {
  const std::optional<absl::Duration> left = TimeLeft(job);
  return absl::StrCat(DoneText(job), left.has_value() ? absl::StrCat(", ETA ", DurationText(*left)) : "");
}

std::string Head(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone) {
  Rows rows = {{"job", Printable(job.job_id())},
               {"state", JobProgressText(job, now)},
               {"what", SpecText(job.spec())},
               {"done", DoneLine(job)},
               {"submitted", WhenText(job.submitted_unix_ms(), now, zone)},
               {"started", WhenText(job.started_unix_ms(), now, zone)},
               {"first step", WhenText(job.first_step_unix_ms(), now, zone)}};
  if (const v1::CommandSpec& command = job.spec().command(); command.has_files()) {
    rows.insert(rows.begin() + 3, Rows::value_type{"files", FilesText(command.files())});
  }
  if (HasEnded(job.state())) rows.push_back({"ended", WhenText(job.ended_unix_ms(), now, zone)});
  rows.push_back({"center", job.has_center() ? CenterText(job.center()) : "not evaluated yet"});
  for (int i = 0; i < job.servers_size(); ++i) rows.push_back({i == 0 ? "servers" : "", Printable(job.servers(i))});
  if (job.servers().empty()) rows.push_back({"servers", "-"});
  return FormatTable(rows);
}

std::vector<std::string> GroupRow(const v1::GroupStatus& group) {
  const v1::RankProgress& progress = group.progress();
  const bool trains = group.task() != v1::GroupStart::EVALUATE;
  const bool known = trains && group.has_progress();
  const auto number = [known](double value, int digits) {
    return known && std::isfinite(value) ? absl::StrFormat("%.*f", digits, value) : "-";
  };
  const std::string total = progress.steps_total() == 0 ? "?" : absl::StrCat(progress.steps_total());
  const std::string state = GroupStateText(group.state());
  const std::string reason = ReasonText(state, group.reason());
  return {GroupText(group),
          state,
          group.worker().empty() ? "-" : PlaceText(group),
          group.incarnation() == 0 ? "-" : absl::StrCat(group.incarnation()),
          known ? absl::StrCat(StepText(group), "/", total) : "-",
          number(progress.epoch(), 2),
          number(progress.loss(), 4),
          number(progress.samples_per_s(), 0),
          known ? SharesText(progress) : "",
          reason.empty() ? "" : reason.substr(2)};
}

// A line for each group that has metrics of its own.
std::string MetricLines(const v1::JobStatus& job) {
  std::string lines;
  for (const v1::GroupStatus& group : job.groups()) {
    const std::string metrics = MetricsText(group.progress().metrics());
    if (!metrics.empty()) absl::StrAppend(&lines, GroupText(group), ": ", metrics, "\n");
  }
  return lines.empty() ? "" : absl::StrCat("\n", lines);
}

std::string Groups(const v1::JobStatus& job) {
  if (job.groups().empty()) return "";
  Rows rows = {
      {"GROUP", "STATE", "WORKER (SITE)", "START", "STEP", "EPOCH", "LOSS", "SAMPLES/S", "TIME SPENT IN", "REASON"}};
  for (const v1::GroupStatus& group : job.groups()) rows.push_back(GroupRow(group));
  return absl::StrCat("\n", FormatTable(rows));
}

std::string Events(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone) {
  std::string lines;
  for (const JobSilence& silence : Silences(job, now, zone)) absl::StrAppend(&lines, "! ", silence.text, "\n");
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.slow().empty()) continue;
    absl::StrAppend(&lines, "! group ", group.group(), " is a straggler: ", Printable(group.slow()), "\n");
  }
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.state() != v1::GROUP_STATE_HELD) continue;
    absl::StrAppend(&lines, "! ", GroupText(group), " is held; `hooke resume ", Printable(job.job_id()),
                    "` starts it again. Its last lines:\n");
    for (const std::string& line : group.last_lines()) absl::StrAppend(&lines, "    ", Printable(line), "\n");
  }
  for (const std::string& text : {AbsentText(job, zone), OlderSetbackText(job, 0, zone)}) {
    if (!text.empty()) absl::StrAppend(&lines, "! ", text, "\n");
  }
  for (const v1::Notice& notice : job.notices()) {
    absl::StrAppend(&lines, TimeText(absl::FromUnixMillis(notice.unix_ms()), now, zone), "  ", Printable(notice.text()),
                    "\n");
  }
  return lines.empty() ? "" : absl::StrCat("\n", lines);
}

}  // namespace

std::string JobDetails(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone) {
  return WithTimeTexts(absl::StrCat(Head(job, now, zone), Groups(job), MetricLines(job), Events(job, now, zone)), now,
                       zone);
}

}  // namespace hooke
