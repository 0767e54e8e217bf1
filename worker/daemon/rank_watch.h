#ifndef HOOKE_WORKER_DAEMON_RANK_WATCH_H_
#define HOOKE_WORKER_DAEMON_RANK_WATCH_H_

// What a daemon knows of its group's ranks from their reports: who is silent, since when and at which step, what failed
// first, whether the group has to be stopped, how it ended. Pure: knows no threads, sockets, processes or clocks. Used
// by group_run.h. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/launch/launch_command.h"

namespace hooke {

struct RankWatchOptions {
  uint32_t ranks = 1;                              // >= 1.
  absl::Time started;                              // When the launcher was started.
  absl::Duration silent_after = absl::Seconds(4);  // A rank reports at least once a second.
  absl::Duration first_word_within =
      absl::Seconds(30);  // Loading libraries from a cold disk takes a while; then it counts as silent.
  absl::Duration give_up_after =
      absl::Seconds(30);  // A rank silent for so long ends its group (before its first word: 4x).
  absl::Duration launcher_grace = absl::Seconds(3);  // A rank is gone: the launcher has to notice within this.
  absl::Duration finish_within = absl::Seconds(30);  // All ranks are done: the launcher has to end within this.
};

struct SilenceChange {
  bool silent = true;  // False: it answers again.
  std::string what;    // "rank 1 (pid 1234)".
  absl::Time since;    // Its last word.
  uint64_t step = 0;   // The last it reported.
};

// How the group ended, for a person and for the coordinator's decision to try again.
struct GroupVerdict {
  bool ok = false;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
};

// The launcher's part in it.
struct LauncherEnd {
  bool exit_ok = false;
  std::string exit;        // "mpirun exited with status 137".
  LauncherVerdict said;    // What it printed about the process that ended its run.
  std::string last_words;  // The last line that it or a rank printed; may be empty.
};

class RankWatch {
 public:
  explicit RankWatch(const RankWatchOptions& options);

  // ---- Reports. A rank number outside the group is refused by Hello; the others want a rank that Hello accepted.
  struct HelloReport {
    uint32_t rank = 0;
    uint32_t ranks = 0;
    int64_t pid = 0;
  };
  // INVALID_ARGUMENT: not a rank of this group. ALREADY_EXISTS: that rank has reported before.
  absl::Status Hello(const HelloReport& hello, absl::Time now);
  void Progress(uint32_t rank, uint64_t step, absl::Time now);
  void Heard(uint32_t rank, absl::Time now);
  void Failed(uint32_t rank, const absl::Status& why, absl::Time now);
  void Done(uint32_t rank, absl::Time now);
  void StreamEnded(uint32_t rank, absl::Time now);

  // ---- Decisions.
  // Time passes: call it every fraction of a second. Returns the silences that began or ended since the last call. When
  // the daemon itself did not run for a while (calls further apart than half of `silent_after`), that time counts for
  // no rank.
  std::vector<SilenceChange> Tick(absl::Time now);
  // OK, or why the group has to be stopped now.
  absl::Status MustStop(absl::Time now) const;
  // Whether the launcher is ending the group already, if it was stopped for the reason `stopped`: a rank that gives up
  // leaves after its last word, and a launcher that sees a rank leave ends the others.
  bool LauncherEndsByItself(const absl::Status& stopped) const;
  bool AllDone() const;
  // Of its ranks, as far as they have said.
  uint64_t FurthestStep() const;
  // How the group ended. `stopped`: why the daemon stopped it, OK if it did not.
  GroupVerdict Verdict(const LauncherEnd& launcher, const absl::Status& stopped) const;

 private:
  enum class State { kUnheard, kReporting, kDone, kFailed, kGone };
  struct Rank {
    State state = State::kUnheard;
    int64_t pid = 0;
    uint64_t step = 0;
    absl::Time heard;
    bool silent = false;
  };
  struct Failure {
    uint32_t rank = 0;
    bool gone = false;  // Its stream broke without a last word.
    absl::Status status;
    absl::Time when;
  };

  void NoteFailure(Failure failure);
  // Whose end was the group's, as far as that is known.
  std::optional<uint32_t> FirstToDie(const LauncherVerdict& said) const;
  std::string Name(uint32_t rank) const;
  // After how long without a word a rank in its state is silent; infinite for one that has said its last.
  absl::Duration SilentAfter(const Rank& rank) const;
  absl::Duration GiveUpAfter(const Rank& rank) const;

  RankWatchOptions options_;
  std::vector<Rank> ranks_;
  std::optional<Failure> first_failure_;
  std::optional<absl::Time> all_done_;
  absl::Time last_tick_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_RANK_WATCH_H_
