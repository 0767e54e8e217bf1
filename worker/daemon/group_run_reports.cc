// The part of GroupRun that takes what the ranks and their launcher say: reports over the daemon's socket, and lines of
// output.

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "wire/worker_limits.h"
#include "worker/daemon/group_run.h"
#include "worker/daemon/outbox.h"
#include "worker/launch/command_script.h"

namespace hooke {
namespace {

// How long a rank's hello may wait for GroupStarted. When a rank reports, its launcher has started, so the wait is
// short. Only a daemon that was stopped takes this long to send GroupStarted.
constexpr absl::Duration kAnnounceLimit = absl::Seconds(30);
constexpr size_t kProfileBytesMax = 256 << 10;

}  // namespace

absl::Status GroupRun::RankHello(const v1::RankHello& hello) {
  if (!announced_.WaitForNotificationWithTimeout(kAnnounceLimit)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the daemon has not started this group's mpirun within ", absl::FormatDuration(kAnnounceLimit)));
  }
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = watch_.Hello({hello.rank(), hello.ranks(), hello.pid()}, SteadyTime());
    if (!status.ok()) {
      if (stopped_.ok()) stopped_ = status;
      return status;
    }
    exit_order_.Add(hello.rank(), static_cast<pid_t>(hello.pid()));
  }
  v1::RankEvent event;
  *event.mutable_hello() = hello;
  Report(hello.rank(), event);
  return absl::OkStatus();
}

void GroupRun::RankEvent(uint32_t rank, const v1::RankEvent& event) {
  v1::RankEvent passed = event;
  std::optional<v1::RankProgress> came_to;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = SteadyTime();
    watch_.Heard(rank, now);
    if (event.has_progress()) {
      watch_.Progress(rank, event.progress().step(), now);
      missed_.Take(rank, event.progress());
      if (!filter_.MustPass(rank, event.progress())) return;
    }
    if (event.has_done()) watch_.Done(rank, now);
    if (event.has_failed()) {
      // A failure must not have code OK.
      auto code = static_cast<absl::StatusCode>(event.failed().code());
      if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
      watch_.Failed(rank, absl::Status(code, CleanLine(event.failed().message(), kTextBytesMax)), now);
      came_to = filter_.TakeDropped(rank);
    }
  }
  if (came_to.has_value()) {
    v1::RankEvent progress;
    *progress.mutable_progress() = *std::move(came_to);
    Report(rank, progress);
  }
  // None of our ranks makes such a profile. It is dropped, because the next one would be as large.
  if (event.has_profile() && event.ByteSizeLong() > kProfileBytesMax) return;
  if (event.has_links() && event.links().links_size() > kLinksMax) return;
  // Rank 0 says once how it began.
  if (event.has_begun() && (rank != 0 || event.begun().spans_size() > kBegunSpansMax || !NoteBegun())) return;
  if (event.has_failed()) passed.mutable_failed()->set_message(CleanLine(event.failed().message(), kTextBytesMax));
  if (event.has_notice()) passed.mutable_notice()->set_text(CleanLine(event.notice().text(), kTextBytesMax));
  Report(rank, passed);
}

bool GroupRun::NoteBegun() {
  absl::MutexLock lock(&mutex_);
  return !std::exchange(said_begun_, true);
}

void GroupRun::RankStreamEnded(uint32_t rank) {
  absl::MutexLock lock(&mutex_);
  watch_.StreamEnded(rank, SteadyTime());
}

void GroupRun::ReadLine(absl::string_view line) {
  const TaggedLine tagged = ParseTaggedLine(options_.launch.flavour, line);
  {
    absl::MutexLock lock(&mutex_);
    const bool from_rank = tagged.source != "mpirun";
    if (!from_rank) ReadLauncherLine(options_.launch.flavour, line, launcher_said_);
    // A line of a rank tells more than a line of the launcher, which also prints lines of dashes around its messages.
    const bool says_something = tagged.text.find_first_not_of("-= \t\r") != absl::string_view::npos;
    if (says_something && (from_rank || !rank_spoke_)) last_words_ = CleanLine(tagged.text, 500);
    rank_spoke_ = rank_spoke_ || from_rank;
  }
  callbacks_.log(tagged.source, tagged.text);
}

void GroupRun::ReadRankLine(const RankOutput::Line& line) {
  const std::string source = absl::StrCat("rank ", line.rank);
  absl::string_view text = line.text;
  if (line.from_stderr && IsStartLine(text, mark_)) {
    absl::MutexLock lock(&mutex_);
    watch_.Started(line.rank, SteadyTime());
    return;
  }
  const std::optional<ExitLine> exit = line.from_stderr ? ReadExitLine(text, mark_) : std::nullopt;
  if (exit.has_value()) text = exit->before;
  {
    absl::MutexLock lock(&mutex_);
    if (line.from_stderr) error_lines_.Add(source, text);
    if (exit.has_value()) watch_.Exited(line.rank, exit->status, error_lines_.Of(source), SteadyTime());
  }
  if (!exit.has_value() || !text.empty()) callbacks_.log(source, text);
}

void GroupRun::Report(uint32_t rank, const v1::RankEvent& event) {
  v1::GroupEvent group_event;
  group_event.mutable_report()->set_rank(rank);
  *group_event.mutable_report()->mutable_event() = event;
  callbacks_.event(std::move(group_event));
}

}  // namespace hooke
