#include "client/watch/watch.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/text/time_text.h"
#include "job/job_state.h"

namespace hooke {
namespace {

// While this process runs, it looks for news of the coordinator at least this often. A longer gap means that the
// process did not run.
constexpr absl::Duration kLongestLook = absl::Seconds(2);

// True for errors of a coordinator that stops or starts. Any other error is the coordinator's answer.
bool IsPassing(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kOutOfRange:  // The stream ended before the job did.
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:  // A connection was cut in the middle of a message.
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

class Follower {
 public:
  Follower(CoordinatorClient& coordinator, std::string job_id, WatchScreen& screen, Interrupts* interrupts,
           const WatchOptions& options)
      : coordinator_(coordinator),
        job_id_(std::move(job_id)),
        screen_(screen),
        interrupts_(interrupts),
        options_(options) {}

  absl::StatusOr<v1::JobStatus> Follow() {
    last_heard_ = last_look_ = options_.clock();
    while (true) {
      if (interrupts_ != nullptr && interrupts_->WaitFor(absl::ZeroDuration()).has_value())
        return absl::CancelledError("interrupted");
      if (stream_ == nullptr && options_.clock() >= next_try_) stream_ = coordinator_.WatchJob(job_id_);
      absl::StatusOr<v1::JobStatus> status = stream_ != nullptr ? stream_->Next(options_.poll) : Pause();
      if (status.ok()) {
        Heard(*std::move(status));
        // Nothing happens in a held job until somebody resumes or cancels it.
        if (HasEnded(job_->state()) || job_->state() == v1::JOB_STATE_HELD) return *std::move(job_);
      } else if (absl::IsDeadlineExceeded(status.status())) {
        Redraw();
      } else if (IsPassing(status.status())) {
        ++broken_tries_;
        Retry();
      } else {
        return coordinator_.ExplainAbout(job_id_, status.status());
      }
      if (absl::Status silence = CheckSilence(); !silence.ok()) return silence;
    }
  }

 private:
  absl::StatusOr<v1::JobStatus> Pause() {
    absl::SleepFor(options_.poll);
    return absl::DeadlineExceededError("between two tries");
  }

  void Heard(v1::JobStatus status) {
    const absl::Time now = options_.clock();
    if (away_) screen_.Back(last_heard_, now);
    away_ = false;
    broken_tries_ = 0;
    last_heard_ = now;
    waited_ = absl::ZeroDuration();
    last_drawn_ = last_heard_;
    job_ = std::move(status);
    screen_.Show(*job_, absl::FromUnixMillis(job_->now_unix_ms()));
  }

  // Shows the last status again, so that times on the screen advance even if nothing is heard.
  void Redraw() {
    const absl::Time now = options_.clock();
    if (!job_.has_value() || away_ || now - last_drawn_ < options_.redraw) return;
    last_drawn_ = now;
    screen_.Show(*job_, absl::FromUnixMillis(job_->now_unix_ms()) + (now - last_heard_));
  }

  void Retry() {
    stream_.reset();
    next_try_ = options_.clock() + options_.retry;
  }

  absl::Status CheckSilence() {
    const absl::Time now = options_.clock();
    // Time in which the process did not run, as on a sleeping laptop, does not count.
    waited_ += std::clamp(now - last_look_, absl::ZeroDuration(), kLongestLook);
    last_look_ = now;
    if (waited_ > options_.patience) {
      const std::string since = TimeText(last_heard_, now, absl::LocalTimeZone());
      return absl::UnavailableError(absl::StrCat("coordinator ", coordinator_.address(), " has not answered since ",
                                                 since, "; giving up (--patience waits longer). Job ", job_id_,
                                                 " may go on; `hooke watch ", job_id_, "` looks again"));
    }
    // The first failure may be only a broken connection. After a second failure in a row the coordinator counts as
    // away.
    if (now - last_heard_ <= options_.silence && broken_tries_ < 2) return absl::OkStatus();
    if (!away_) screen_.Away(job_.has_value() ? &*job_ : nullptr, last_heard_, now);
    away_ = true;
    // If a host vanishes, its stream never breaks. So a silent stream is opened anew.
    if (stream_ != nullptr && now >= next_try_ + options_.silence) Retry();
    return absl::OkStatus();
  }

  CoordinatorClient& coordinator_;
  const std::string job_id_;
  WatchScreen& screen_;
  Interrupts* const interrupts_;
  const WatchOptions& options_;
  std::unique_ptr<TimedReader<v1::JobStatus>> stream_;
  absl::Time next_try_ = absl::InfinitePast();
  absl::Time last_heard_;
  absl::Time last_look_;
  absl::Duration waited_;  // Time since the coordinator last answered, without times in which this process did not run.
  absl::Time last_drawn_ = absl::InfinitePast();
  bool away_ = false;
  int broken_tries_ = 0;  // Failed tries in a row since the coordinator last answered.
  std::optional<v1::JobStatus> job_;
};

}  // namespace

absl::StatusOr<v1::JobStatus> FollowJob(CoordinatorClient& coordinator, const std::string& job_id, WatchScreen& screen,
                                        Interrupts* interrupts, const WatchOptions& options) {
  return Follower(coordinator, job_id, screen, interrupts, options).Follow();
}

}  // namespace hooke
