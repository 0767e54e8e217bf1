#ifndef HOOKE_WORKER_DAEMON_RANK_WATCH_H_
#define HOOKE_WORKER_DAEMON_RANK_WATCH_H_

// Judges a group from its ranks' reports: which ranks are silent, since when and at which step; what failed first;
// whether the group must be stopped; and how it ended. Pure: no threads, sockets, processes or clocks. Not thread-safe.

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
  // Before its first report a rank counts as silent only after this: loading libraries from a cold disk takes a while.
  absl::Duration first_word_within = absl::Seconds(30);
  // A rank that is silent for this long ends its group. Before its first report it has four times as long.
  absl::Duration give_up_after = absl::Seconds(30);
  absl::Duration launcher_grace = absl::Seconds(3);  // Time for the launcher to notice that a rank is gone.
  absl::Duration finish_within = absl::Seconds(30);  // Time for the launcher to end after all ranks are done.
};

struct SilenceChange {
  bool silent = true;  // False: the rank reports again.
  std::string what;    // "rank 1 (pid 1234)".
  absl::Time since;    // When it last reported.
  uint64_t step = 0;   // The last step that it reported.
};

// How the group ended: the message is for people, and the code decides whether the coordinator tries again.
struct GroupVerdict {
  bool ok = false;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
};

// How the launcher ended.
struct LauncherEnd {
  bool exit_ok = false;
  std::string exit;        // "mpirun exited with status 137".
  LauncherVerdict said;    // What it printed about the process that ended its run.
  std::string last_words;  // The last line that it or a rank printed; may be empty.
};

class RankWatch {
 public:
  explicit RankWatch(const RankWatchOptions& options);

  // ---- Reports. Hello refuses a rank number outside the group; the others take only ranks that Hello accepted.
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
  // Call it every fraction of a second. Returns the silences that began or ended since the last call. If calls are
  // further apart than half of `silent_after`, the daemon itself did not run, and that time counts against no rank.
  std::vector<SilenceChange> Tick(absl::Time now);
  // OK, or why the group has to be stopped now.
  absl::Status MustStop(absl::Time now) const;
  // Whether the launcher ends the group by itself after a stop for the reason `stopped`. It does so if a rank gave up:
  // that rank leaves after its report, and a launcher that sees a rank leave ends the others.
  bool LauncherEndsByItself(const absl::Status& stopped) const;
  bool AllDone() const;
  // The highest step that a rank has reported.
  uint64_t FurthestStep() const;
  // How the group ended. `stopped` is why the daemon stopped it; OK: it did not.
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
    bool gone = false;  // Its stream broke without a final report.
    absl::Status status;
    absl::Time when;
  };

  void NoteFailure(Failure failure);
  // The rank whose end caused the group's end, if that is known.
  std::optional<uint32_t> FirstToDie(const LauncherVerdict& said) const;
  std::string Name(uint32_t rank) const;
  // After this long without a report the rank counts as silent. Infinite if it has sent its final report.
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
