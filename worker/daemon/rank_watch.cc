#include "worker/daemon/rank_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "wire/utc_time.h"
#include "worker/launch/command_script.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

std::string HowItDied(const LauncherVerdict& said) {
  if (said.signal.has_value()) return absl::StrCat("ended by ", SignalText(*said.signal));
  if (said.exit_status.has_value()) return absl::StrCat("exited with status ", *said.exit_status);
  return "is gone without a word";
}

// Turns a command's failure into one that fails the job, unless its code says whether a new try may help. An exception
// in a script has no such code, and would most likely be raised again.
absl::Status AsCommandFailure(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      return why;
    default:
      return absl::FailedPreconditionError(why.message());
  }
}

}  // namespace

RankWatch::RankWatch(const RankWatchOptions& options)
    : options_(options),
      ranks_(options.ranks_here == 0 ? options.ranks : options.ranks_here),
      last_tick_(options.started) {
  for (Rank& rank : ranks_) rank.heard = options.started;
}

absl::Status RankWatch::Hello(const HelloReport& hello, absl::Time now) {
  if (!IsHere(hello.rank) || hello.ranks != options_.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("a process says it is rank ", hello.rank, " of ", hello.ranks,
                                                   ", but this group has ", options_.ranks,
                                                   " ranks: ", options_.command ? "its program" : "hooke-rank",
                                                   " must be linked with the MPI library whose mpirun starts it"));
  }
  Rank& rank = At(hello.rank);
  if (rank.state != State::kUnheard)
    return absl::AlreadyExistsError(absl::StrCat(Name(hello.rank), " has reported before"));
  if (options_.command && !any_hello_) {
    for (Rank& other : ranks_) other.heard = now;
  }
  any_hello_ = true;
  rank.state = State::kReporting;
  rank.pid = hello.pid;
  rank.heard = now;
  return absl::OkStatus();
}

void RankWatch::Started(uint32_t rank, absl::Time now) {
  if (!IsHere(rank)) return;
  At(rank).started = true;
  Heard(rank, now);
}

void RankWatch::Progress(uint32_t rank, uint64_t step, absl::Time now) {
  Heard(rank, now);
  At(rank).step = step;
}

void RankWatch::Heard(uint32_t rank, absl::Time now) { At(rank).heard = now; }

void RankWatch::Failed(uint32_t rank, const absl::Status& why, absl::Time now) {
  Heard(rank, now);
  // The rank's own words come before the exit status that followed them, even if the status was read first.
  const bool exited = first_failure_.has_value() && first_failure_->exited && first_failure_->rank == rank;
  if (exited) first_failure_.reset();
  if (At(rank).state != State::kReporting && !exited) return;
  At(rank).state = State::kFailed;
  NoteFailure({rank, false, false, options_.command ? AsCommandFailure(why) : why, now});
}

void RankWatch::Exited(uint32_t rank, int status, absl::string_view last_lines, absl::Time now) {
  if (!IsHere(rank)) return;
  Heard(rank, now);
  // The rank has reported why it ends. If that is not the group's failure, another rank died first, and this rank's
  // exit is a consequence.
  if (At(rank).state == State::kFailed) return;
  At(rank).state = State::kFailed;
  const std::string end = last_lines.empty() ? "" : absl::StrCat("; the end of its stderr: ", last_lines);
  const std::optional<int> signal = SignalOfStatus(status);
  Failure failure{rank, false, true,
                  signal.has_value() ? absl::UnavailableError(absl::StrCat("ended by ", SignalText(*signal), end))
                                     : absl::FailedPreconditionError(absl::StrCat("exited with status ", status, end)),
                  now};
  // A broken stream tells less than an exit status. It may also be that of a rank that the launcher killed in
  // consequence.
  if (first_failure_.has_value() && first_failure_->gone) first_failure_.reset();
  NoteFailure(std::move(failure));
}

void RankWatch::Done(uint32_t rank, absl::Time now) {
  Heard(rank, now);
  if (At(rank).state != State::kReporting) return;
  At(rank).state = State::kDone;
  if (AllDone()) all_done_ = now;
}

void RankWatch::StreamEnded(uint32_t rank, absl::Time now) {
  if (At(rank).state != State::kReporting) return;
  At(rank).state = State::kGone;
  NoteFailure({rank, true, false, absl::UnavailableError(absl::StrCat(Name(rank), " is gone without a word")), now});
}

std::vector<SilenceChange> RankWatch::Tick(absl::Time now) {
  const absl::Duration away = now - last_tick_;
  last_tick_ = now;
  std::vector<SilenceChange> changes;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (away > options_.silent_after / 2) rank.heard = std::min(now, rank.heard + away);
    const bool silent = now - rank.heard > SilentAfter(rank);
    if (silent == rank.silent) continue;
    rank.silent = silent;
    changes.push_back({silent, Name(options_.first_rank + i), rank.heard, rank.step});
  }
  return changes;
}

absl::Status RankWatch::MustStop(absl::Time now) const {
  if (first_failure_.has_value()) {
    const bool has_time = first_failure_->gone || first_failure_->exited;
    if (!has_time || now - first_failure_->when > options_.launcher_grace) return first_failure_->status;
    return absl::OkStatus();
  }
  const absl::Duration finish_within = options_.command ? options_.command_finish_within : options_.finish_within;
  if (all_done_.has_value() && now - *all_done_ > finish_within) {
    return absl::DeadlineExceededError(absl::StrCat("all ranks are done, but ", options_.launcher,
                                                    " has not ended within ", absl::FormatDuration(finish_within)));
  }
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (now - rank.heard <= GiveUpAfter(rank)) continue;
    if (NotStarted(rank)) {
      return absl::DeadlineExceededError(absl::StrCat(
          options_.launcher, " has not started ", Name(options_.first_rank + i), " within ",
          absl::FormatDuration(GiveUpAfter(rank)),
          ": its group was stopped; if it has ranks on several workers, their nodes must reach one another"));
    }
    return absl::DeadlineExceededError(absl::StrCat(Name(options_.first_rank + i), " has not answered since ",
                                                    UtcText(options_.wall_time_of(rank.heard)), " at step ", rank.step,
                                                    ": its group was stopped"));
  }
  return absl::OkStatus();
}

bool RankWatch::LauncherEndsByItself(const absl::Status& stopped) const {
  return !stopped.ok() && first_failure_.has_value() && !first_failure_->gone && !first_failure_->exited &&
         stopped == first_failure_->status;
}

bool RankWatch::AllDone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.state == State::kDone; });
}

uint64_t RankWatch::FurthestStep() const {
  uint64_t furthest = 0;
  for (const Rank& rank : ranks_) furthest = std::max(furthest, rank.step);
  return furthest;
}

GroupVerdict RankWatch::Verdict(const LauncherEnd& launcher, const absl::Status& stopped) const {
  if (AllDone() && launcher.exit_ok) return {true, absl::StatusCode::kOk, "all ranks are done"};
  if (CommandEnded() && launcher.exit_ok && stopped.ok()) {
    return {true, absl::StatusCode::kOk, "all ranks have exited with status 0"};
  }
  // The daemon's reason for a stop comes first, then a rank's own failure, then what the launcher knows. But if the
  // launcher saw another rank killed, its account comes before the exit of the rank that we saw.
  const bool stopped_for_failure = first_failure_.has_value() && stopped == first_failure_->status;
  if (!stopped.ok() && !stopped_for_failure) return {false, stopped.code(), std::string(stopped.message())};
  const bool another_killed = SawAnotherKilled(launcher.said);
  if (first_failure_.has_value() && !first_failure_->gone && !another_killed) {
    return {false, first_failure_->status.code(),
            absl::StrCat(Name(first_failure_->rank), first_failure_->exited ? " " : ": ",
                         first_failure_->status.message())};
  }
  if (AllDone())
    return {false, absl::StatusCode::kUnavailable, absl::StrCat("all ranks were done, but ", launcher.exit)};
  const LauncherVerdict said =
      // If we stopped the group, the launcher reports our own signals.
      stopped.ok() || another_killed ? launcher.said : LauncherVerdict();
  const std::optional<uint32_t> rank = FirstToDie(said);
  std::string message;
  if (!rank.has_value()) {
    message = absl::StrCat("not all ranks are done, but ", launcher.exit);
  } else {
    const bool about_rank = said.rank == rank || (IsHere(*rank) && said.pid == At(*rank).pid);
    message = absl::StrCat(Name(*rank), " ", HowItDied(about_rank ? said : LauncherVerdict()), "; ", launcher.exit);
  }
  if (!said.signal.has_value() && !launcher.last_words.empty()) {
    absl::StrAppend(&message, "; last line of output: ", launcher.last_words);
  }
  return {false, absl::StatusCode::kUnavailable, message};
}

std::optional<uint32_t> RankWatch::FirstToDie(const LauncherVerdict& said) const {
  // A launcher that names a rank (Open MPI) saw that rank die first. The ranks' streams cannot tell which rank died
  // first, because several may break within microseconds.
  if (said.rank.has_value() && *said.rank < options_.ranks) return said.rank;
  // A launcher that names a process (MPICH) may name one that it killed itself, so the kernel's order is better
  // evidence, and so is a broken stream.
  for (uint32_t rank : exit_order_) {
    if (IsHere(rank) && At(rank).state == State::kGone) return rank;
  }
  if (first_failure_.has_value()) return first_failure_->rank;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    if (said.pid.has_value() && ranks_[i].pid == *said.pid) return options_.first_rank + i;
  }
  return std::nullopt;
}

bool RankWatch::CommandEnded() const {
  return options_.command && std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
           return rank.state == State::kDone || rank.state == State::kUnheard;
         });
}

bool RankWatch::SawAnotherKilled(const LauncherVerdict& said) const {
  return first_failure_.has_value() && first_failure_->exited && said.signal.has_value() && said.rank.has_value() &&
         *said.rank < options_.ranks && *said.rank != first_failure_->rank;
}

void RankWatch::NoteFailure(Failure failure) {
  // Only the first failure counts. Later ones are mostly consequences: a rank waited for the first one, or the launcher
  // killed it.
  if (!first_failure_.has_value()) first_failure_ = std::move(failure);
}

std::string RankWatch::Name(uint32_t rank) const {
  for (const RanksElsewhere& ranks : options_.elsewhere) {
    if (rank >= ranks.first && rank - ranks.first < ranks.count) {
      return absl::StrCat("rank ", rank, " on worker ", ranks.worker);
    }
  }
  if (At(rank).pid == 0) return absl::StrCat("rank ", rank, options_.command ? "" : " (no report yet)");
  return absl::StrCat("rank ", rank, " (pid ", At(rank).pid, ")");
}

bool RankWatch::NotStarted(const Rank& rank) const {
  return options_.command && rank.state == State::kUnheard && !rank.started;
}

absl::Duration RankWatch::SilentAfter(const Rank& rank) const {
  if (rank.state == State::kUnheard) {
    return NotStarted(rank) || !options_.command ? options_.first_word_within : absl::InfiniteDuration();
  }
  return rank.state == State::kReporting ? options_.silent_after : absl::InfiniteDuration();
}

absl::Duration RankWatch::GiveUpAfter(const Rank& rank) const {
  if (NotStarted(rank)) return options_.command_start_within;
  if (rank.state == State::kUnheard && options_.command) {
    return any_hello_ ? options_.command_hello_within : absl::InfiniteDuration();
  }
  if (rank.state == State::kUnheard) return 4 * options_.give_up_after;
  return rank.state == State::kReporting ? std::max(options_.give_up_after, options_.silent_after)
                                         : absl::InfiniteDuration();
}

}  // namespace hooke
