#ifndef HOOKE_WORKER_DAEMON_RANK_WATCH_H_
#define HOOKE_WORKER_DAEMON_RANK_WATCH_H_

// Judges a group from its ranks' reports. It knows which ranks are silent, since when and at which step, and what
// failed first. It decides whether the group must be stopped, and how it ended. Pure: no threads, sockets, processes or
// clocks. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/launch/launcher_output.h"

namespace hooke {

// Ranks of the group that run on another worker.
struct RanksElsewhere {
  uint32_t first = 0;
  uint32_t count = 0;
  std::string worker;
};

struct RankWatchOptions {
  uint32_t ranks = 1;  // Number of ranks of the whole group; >= 1.
  // `first_rank` and `ranks_here` give the ranks that run on this worker. RankWatch judges only these.
  uint32_t first_rank = 0;
  uint32_t ranks_here = 0;  // 0: all.
  std::vector<RanksElsewhere> elsewhere;
  std::string launcher = "mpirun";  // The program that runs the ranks here.
  absl::Time started;               // When the group's run began.
  // Turns a `now` of the calls into the time that people read.
  std::function<absl::Time(absl::Time)> wall_time_of = [](absl::Time now) { return now; };
  // A rank without a report for this long is silent. Ranks report at least once a second.
  absl::Duration silent_after = absl::Seconds(4);
  // Before its first report a rank of hooke-rank counts as silent only after this long, because loading libraries from
  // a cold disk takes a while.
  absl::Duration first_word_within = absl::Seconds(30);
  // A rank without a report for this long ends its group. Before its first report hooke-rank has four times as long,
  // and a command has `command_start_within` and `command_hello_within`.
  absl::Duration give_up_after = absl::Seconds(30);
  // Limit for the launcher to end the group after a rank's stream broke or its command exited.
  absl::Duration launcher_grace = absl::Seconds(3);
  // Limit for the launcher to end after all ranks are done.
  absl::Duration finish_within = absl::Seconds(30);
  // Whether the ranks run a job's command. A command need not use Hooke, so it may never say hello. If it fails in a
  // way that a new try would not mend, the job fails.
  bool command = false;
  // A rank whose command was not started (IsStartLine) after so long ends its group.
  absl::Duration command_start_within = absl::Minutes(5);
  // A command's other ranks have this long for their hello after the first one. A rank may import large libraries.
  absl::Duration command_hello_within = absl::Minutes(10);
  // A command's limit in place of `finish_within`: a script may go on with other work.
  absl::Duration command_finish_within = absl::Minutes(10);
};

struct SilenceChange {
  bool silent = true;  // False: the rank has reported again.
  std::string what;    // The rank, as in "rank 1 (pid 1234)". GroupRun also puts a launcher here.
  absl::Time since;    // When the rank last reported.
  uint64_t step = 0;   // The last step that the rank reported.
};

// How the group ended. The message is for people. The code decides whether the coordinator starts the group again.
struct GroupVerdict {
  bool ok = false;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
};

// How the launcher ended.
struct LauncherEnd {
  bool exit_ok = false;
  std::string exit;      // For example "mpirun exited with status 137".
  LauncherVerdict said;  // What the launcher printed about the process that ended its run.
  // The last line that the launcher or a rank printed; may be empty.
  std::string last_words;
};

class RankWatch {
 public:
  explicit RankWatch(const RankWatchOptions& options);

  // ---- Reports. Progress, Heard, Failed, Done and StreamEnded take only ranks that Hello accepted.
  struct HelloReport {
    uint32_t rank = 0;
    uint32_t ranks = 0;
    int64_t pid = 0;
  };
  // Takes a process's first report. INVALID_ARGUMENT: the process is no rank of this group, or counts another number
  // of ranks. ALREADY_EXISTS: the rank has reported before.
  absl::Status Hello(const HelloReport& hello, absl::Time now);
  // Notes that the rank's command was started (IsStartLine). `rank` may have any value.
  void Started(uint32_t rank, absl::Time now);
  void Progress(uint32_t rank, uint64_t step, absl::Time now);
  void Heard(uint32_t rank, absl::Time now);
  void Failed(uint32_t rank, const absl::Status& why, absl::Time now);
  void Done(uint32_t rank, absl::Time now);
  void StreamEnded(uint32_t rank, absl::Time now);
  // Notes in which order the ranks' processes exited (ExitOrder), before the verdict.
  void SetExitOrder(std::vector<uint32_t> ranks) { exit_order_ = std::move(ranks); }
  // Notes that the rank's command ended with a status other than 0 (ReadExitLine). `last_lines` is the end of its
  // stderr. `rank` may have any value; ranks that do not run here are ignored.
  void Exited(uint32_t rank, int status, absl::string_view last_lines, absl::Time now);

  // ---- Decisions.
  // Call Tick several times a second. It returns the ranks that became silent or reported again since the last call. If
  // calls are further apart than half of `silent_after`, the daemon itself did not run, and that time counts against no
  // rank.
  std::vector<SilenceChange> Tick(absl::Time now);
  // Returns OK, or why the group has to be stopped now.
  absl::Status MustStop(absl::Time now) const;
  // Returns whether the launcher ends the group by itself. `stopped` is the reason for the stop. The result is true if
  // `stopped` is a failure that a rank reported. That rank leaves after its report, and a launcher that sees a rank
  // leave ends the others.
  bool LauncherEndsByItself(const absl::Status& stopped) const;
  bool AllDone() const;
  // Returns whether a rank has said hello.
  bool AnyHello() const { return any_hello_; }
  // Returns the highest step that a rank has reported.
  uint64_t FurthestStep() const;
  // Returns how the group ended. `stopped` is why the daemon stopped it; OK if the daemon did not stop it.
  GroupVerdict Verdict(const LauncherEnd& launcher, const absl::Status& stopped) const;

 private:
  enum class State { kUnheard, kReporting, kDone, kFailed, kGone };
  struct Rank {
    State state = State::kUnheard;
    int64_t pid = 0;
    uint64_t step = 0;
    absl::Time heard;
    bool started = false;  // Whether its command was started.
    bool silent = false;
  };
  struct Failure {
    uint32_t rank = 0;
    bool gone = false;    // Whether the rank's stream broke without a final report.
    bool exited = false;  // Whether the status of its command is the only report.
    absl::Status status;
    absl::Time when;
  };

  bool IsHere(uint32_t rank) const { return rank >= options_.first_rank && rank - options_.first_rank < ranks_.size(); }
  Rank& At(uint32_t rank) { return ranks_[rank - options_.first_rank]; }
  const Rank& At(uint32_t rank) const { return ranks_[rank - options_.first_rank]; }
  void NoteFailure(Failure failure);
  // Returns whether all ranks of a command ended well. Each has reported that it is done, or does not use Hooke.
  bool CommandEnded() const;
  // Returns whether a signal killed another rank first. The exit of the rank in `first_failure_` is then a consequence.
  bool SawAnotherKilled(const LauncherVerdict& said) const;
  // Returns the rank whose end caused the group's end; nullopt if it is not known.
  std::optional<uint32_t> FirstToDie(const LauncherVerdict& said) const;
  std::string Name(uint32_t rank) const;
  // Returns whether the rank runs a command, and its script has not said that it runs.
  bool NotStarted(const Rank& rank) const;
  // Returns the time without a report after which the rank counts as silent. It is infinite for a rank that has ended,
  // and for a command's rank between its start and its hello.
  absl::Duration SilentAfter(const Rank& rank) const;
  absl::Duration GiveUpAfter(const Rank& rank) const;

  RankWatchOptions options_;
  std::vector<Rank> ranks_;  // The ranks that run here, from options_.first_rank on.
  std::optional<Failure> first_failure_;
  std::vector<uint32_t> exit_order_;
  std::optional<absl::Time> all_done_;
  bool any_hello_ = false;
  absl::Time last_tick_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_RANK_WATCH_H_
