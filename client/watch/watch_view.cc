#include "client/watch/watch_view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text/job_text.h"
#include "client/text/time_text.h"
#include "job/job_state.h"
#include "job/metric.h"
#include "job/state_word.h"

namespace hooke {
namespace {

constexpr size_t kNoticesShown = 4;

double Fraction(const v1::RankProgress& progress) {
  if (progress.steps_total() == 0) return 0;
  return std::min(1.0, static_cast<double>(progress.step()) / static_cast<double>(progress.steps_total()));
}

// Returns a bar such as "[####>     ]"; empty if there is no room.
std::string Bar(double fraction, int width) {
  const int inside = width - 2;
  if (inside < 4) return "";
  const int full = static_cast<int>(fraction * inside);
  std::string bar(static_cast<size_t>(full), '#');
  if (full < inside && full > 0) bar.back() = '>';
  bar.resize(static_cast<size_t>(inside), ' ');
  return absl::StrCat("[", bar, "]");
}

std::string LossText(double loss) { return std::isfinite(loss) ? absl::StrFormat("%.4f", loss) : "-"; }

std::string RateText(double samples_per_s) {
  return std::isfinite(samples_per_s) ? absl::StrFormat("%.0f samples/s", samples_per_s) : "- samples/s";
}

// Returns a line such as "[###>   ]  47 %  528/1123  loss 0.3512  1843 samples/s". If a group has not reported to this
// coordinator, its numbers are "-": its step is unknown, not 0.
std::string BarLine(const v1::GroupStatus& group, int width) {
  const v1::RankProgress& progress = group.progress();
  const bool known = group.has_progress();
  const bool finished = group.state() == v1::GROUP_STATE_FINISHED;
  const double fraction = finished ? 1 : Fraction(progress);
  const std::string percent = known || finished ? absl::StrFormat("%.0f", std::floor(100 * fraction)) : "-";
  const std::string total = progress.steps_total() == 0 ? "?" : absl::StrCat(progress.steps_total());
  const std::string bar = Bar(fraction, std::min(40, width - 62));
  return absl::StrFormat("%-9s %s%s%3s %%  %*s/%s  loss %6s  %s", GroupText(group), bar, bar.empty() ? "" : " ",
                         percent, static_cast<int>(total.size()), StepText(group), total,
                         known ? LossText(progress.loss()) : "-",
                         known ? RateText(progress.samples_per_s()) : "- samples/s");
}

std::string StateAndPlace(const v1::GroupStatus& group) {
  const std::string place = PlaceText(group);
  return absl::StrCat(GroupStateText(group.state()), place.empty() ? "" : " on ", place);
}

// Returns a line such as "running on w1 (hpc), start 2: perplexity 21.5, compute 82 %, collective 15 %, exchange 3 %".
std::string StateLine(const v1::GroupStatus& group) {
  std::string text = StateAndPlace(group);
  if (group.incarnation() > 1) absl::StrAppend(&text, ", start ", group.incarnation());
  absl::StrAppend(&text, ReasonText(GroupStateText(group.state()), group.reason()));
  if (group.state() != v1::GROUP_STATE_RUNNING) return text;
  std::string numbers = MetricsText(group.progress().metrics());
  const std::string shares = SharesText(group.progress());
  if (!shares.empty()) absl::StrAppend(&numbers, numbers.empty() ? "" : ", ", shares);
  if (!numbers.empty()) absl::StrAppend(&text, ": ", numbers);
  // Shows how long rank 0 is in its phase. A rank that hangs is seen here before it counts as silent.
  if (group.progress().phase_seconds() >= 3) {
    std::string phase = v1::RankProgress::Phase_Name(group.progress().phase());
    std::transform(phase.begin(), phase.end(), phase.begin(), [](unsigned char c) { return std::tolower(c); });
    absl::StrAppendFormat(&text, "; %s for %.0f s", phase, group.progress().phase_seconds());
  }
  return text;
}

// True if a notice of the coordinator already reports that this peer stopped answering. The coordinator then also sends
// a notice when the peer answers again.
bool NoticeTells(const v1::JobStatus& job, const JobSilence& silence) {
  const std::string words = absl::StrCat(silence.what, " has not answered since ");
  return absl::c_any_of(job.notices(), [&](const v1::Notice& notice) {
    return notice.unix_ms() >= silence.since_unix_ms && absl::StrContains(Printable(notice.text()), words);
  });
}

}  // namespace

std::vector<std::string> RenderWatch(const v1::JobStatus& job, absl::Time now, const WatchViewOptions& options) {
  std::vector<std::string> head;
  const std::optional<absl::Duration> left = TimeLeft(job);
  head.push_back(absl::StrCat(Printable(job.job_id()), "  ", JobProgressText(job, now),
                              left.has_value() ? absl::StrCat(", ETA ", DurationText(*left)) : "", "  ",
                              SpecText(job.spec())));
  std::vector<std::string> tail;
  if (job.has_center()) tail.push_back(absl::StrCat("center    ", CenterText(job.center())));
  for (const JobSilence& silence : Silences(job, now, options.zone)) tail.push_back(absl::StrCat("! ", silence.text));
  const std::string absent = AbsentText(job, options.zone);
  if (!absent.empty()) tail.push_back(absl::StrCat("! ", absent));
  const int first_notice = std::max(0, job.notices_size() - static_cast<int>(kNoticesShown));
  for (int i = first_notice; i < job.notices_size(); ++i) {
    tail.push_back(absl::StrCat(TimeText(absl::FromUnixMillis(job.notices(i).unix_ms()), now, options.zone), "  ",
                                Printable(job.notices(i).text())));
  }
  const std::string setback = OlderSetbackText(job, first_notice, options.zone);
  if (!setback.empty()) tail.push_back(absl::StrCat("! ", setback));

  // The terminal's last line stays free for the cursor. Lines above and below the groups get their room before the
  // groups.
  const int height = std::max(3, options.height - 1);
  tail.resize(std::min<size_t>(tail.size(), static_cast<size_t>(height - 2)));
  const int room = height - 1 - static_cast<int>(tail.size());
  const bool two_lines = 2 * job.groups_size() <= room;
  const int shown = two_lines || job.groups_size() <= room ? job.groups_size() : std::max(0, room - 1);
  for (int i = 0; i < shown; ++i) {
    const bool evaluation = job.groups(i).task() == v1::GroupStart::EVALUATE;  // An evaluation has no steps.
    head.push_back(evaluation ? absl::StrCat("evaluate  ", StateLine(job.groups(i)))
                              : BarLine(job.groups(i), options.width));
    if (two_lines && !evaluation) head.push_back(absl::StrCat("          ", StateLine(job.groups(i))));
  }
  if (shown < job.groups_size()) head.push_back(absl::StrCat("          and ", job.groups_size() - shown, " more"));
  head.insert(head.end(), tail.begin(), tail.end());
  for (std::string& line : head) line = CutToWidth(WithTimeTexts(line, now, options.zone), options.width);
  return head;
}

std::string AwayText(absl::Time since, absl::Time now, absl::TimeZone zone) {
  return absl::StrCat("coordinator away since ", TimeText(since, now, zone), "; showing what was known then");
}

std::vector<std::string> RenderAway(const v1::JobStatus& job, absl::Time since, absl::Time now,
                                    const WatchViewOptions& options) {
  WatchViewOptions below = options;
  below.height = std::max(1, options.height - 1);
  std::vector<std::string> lines = RenderWatch(job, absl::FromUnixMillis(job.now_unix_ms()), below);
  lines.insert(lines.begin(), CutToWidth(AwayText(since, now, options.zone), options.width));
  const int room = std::max(1, options.height - 1);
  lines.resize(std::min(lines.size(), static_cast<size_t>(room)));
  return lines;
}

std::vector<std::string> WatchLog::Lines(const v1::JobStatus& job, absl::Time now) {
  LineList lines;
  TellNotices(job, now, lines);
  const std::string state = JobStateText(job.state());
  const bool changed = state != job_state_;
  if (changed && !HasEnded(job.state())) {
    const std::string reason = ReasonText(state, job.reason());
    lines.push_back(
        Stamped(now, now, absl::StrCat(Printable(job.job_id()), ": ", state, reason, " (", SpecText(job.spec()), ")")));
  }
  TellSilences(job, now, lines);
  for (const v1::GroupStatus& group : job.groups()) TellGroup(group, now, lines);
  if (changed && HasEnded(job.state())) {
    lines.push_back(Stamped(now, now, absl::StrCat(Printable(job.job_id()), ": ", JobProgressText(job, now))));
  }
  job_state_ = state;
  return lines;
}

void WatchLog::TellGroup(const v1::GroupStatus& group, absl::Time now, LineList& lines) {
  Told& told = groups_[{group.group(), group.task()}];
  const v1::RankProgress& progress = group.progress();
  std::string state = StateAndPlace(group);
  if (group.incarnation() > 1) absl::StrAppend(&state, ", start ", group.incarnation());
  absl::StrAppend(&state, ReasonText(GroupStateText(group.state()), group.reason()));
  if (state != told.state) {
    lines.push_back(Stamped(now, now, absl::StrCat(GroupText(group), ": ", state)));
    told.state = std::move(state);
  }
  const bool moved = progress.step() != told.step && group.task() != v1::GroupStart::EVALUATE;
  const bool due = now - told.at >= options_.interval || progress.step() == progress.steps_total();
  if (!moved || !due || progress.steps_total() == 0) return;
  const std::string shares = SharesText(progress);
  const std::string metrics = MetricsText(progress.metrics());
  lines.push_back(
      Stamped(now, now,
              absl::StrFormat("%s: step %d/%d (%.0f %%), epoch %.2f, loss %s, %s%s%s%s%s", GroupText(group),
                              progress.step(), progress.steps_total(), std::floor(100 * Fraction(progress)),
                              progress.epoch(), LossText(progress.loss()), metrics, metrics.empty() ? "" : ", ",
                              RateText(progress.samples_per_s()), shares.empty() ? "" : ", ", shares)));
  told.step = progress.step();
  told.at = now;
}

void WatchLog::TellNotices(const v1::JobStatus& job, absl::Time now, LineList& lines) {
  std::set<std::pair<int64_t, std::string>> all;
  for (const v1::Notice& notice : job.notices()) {
    if (all.emplace(notice.unix_ms(), notice.text()).second && notices_.count({notice.unix_ms(), notice.text()}) == 0) {
      lines.push_back(Stamped(absl::FromUnixMillis(notice.unix_ms()), now, Printable(notice.text())));
    }
  }
  notices_ = std::move(all);
}

void WatchLog::TellSilences(const v1::JobStatus& job, absl::Time now, LineList& lines) {
  std::map<std::string, std::string> all;
  for (const JobSilence& silence : Silences(job, now, options_.zone)) {
    const auto before = silences_.find(silence.key);
    const bool new_here = before == silences_.end();
    const bool told = new_here ? NoticeTells(job, silence) : before->second.empty();
    all.emplace(silence.key, told ? "" : silence.who);
    if (new_here && !told) lines.push_back(Stamped(now, now, silence.text));
  }
  for (const auto& [key, who] : silences_) {
    if (all.count(key) == 0 && !who.empty() && !HasEnded(job.state()))
      lines.push_back(Stamped(now, now, absl::StrCat(who, " is no longer silent")));
  }
  silences_ = std::move(all);
}

std::string WatchLog::Stamped(absl::Time time, absl::Time now, absl::string_view text) const {
  return absl::StrCat(TimeText(time, now, options_.zone), "  ", WithTimeTexts(text, now, options_.zone));
}

}  // namespace hooke
