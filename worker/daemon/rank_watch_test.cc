#include "worker/daemon/rank_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

RankWatch Watch(uint32_t ranks) {
  RankWatchOptions options;
  options.ranks = ranks;
  options.started = kStart;
  return RankWatch(options);
}

// Returns a watch of two ranks that have said hello at second 1, with pids 100 and 101.
RankWatch Reporting() {
  RankWatch watch = Watch(2);
  EXPECT_TRUE(watch.Hello({0, 2, 100}, At(1)).ok());
  EXPECT_TRUE(watch.Hello({1, 2, 101}, At(1)).ok());
  watch.Tick(At(1));
  return watch;
}

// Returns a watch of ranks whose commands were started at once.
RankWatch CommandWatch(uint32_t ranks) {
  RankWatchOptions options;
  options.ranks = ranks;
  options.started = kStart;
  options.command = true;
  RankWatch watch(options);
  for (uint32_t rank = 0; rank < ranks; ++rank) watch.Started(rank, kStart);
  return watch;
}

LauncherEnd Exit(int status) { return {status == 0, absl::StrCat("mpirun exited with status ", status), {}, ""}; }

// If a rank reports nothing for 4 s, one change says that it is silent, with the time and step of its last report.
// Another change comes when it reports again.
TEST(RankWatchTest, SilenceBeginsAndEnds) {
  RankWatch watch = Reporting();
  watch.Progress(1, 17, At(2));
  for (int halves = 4; halves <= 12; ++halves) {
    watch.Progress(0, 18, At(halves / 2.0));
    EXPECT_TRUE(watch.Tick(At(halves / 2.0)).empty()) << halves;
  }
  watch.Progress(0, 18, At(6.5));
  std::vector<SilenceChange> changes = watch.Tick(At(6.5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].silent);
  EXPECT_EQ(changes[0].what, "rank 1 (pid 101)");
  EXPECT_EQ(changes[0].since, At(2));
  EXPECT_EQ(changes[0].step, 17u);
  EXPECT_TRUE(watch.Tick(At(7)).empty());
  watch.Progress(1, 18, At(7));
  changes = watch.Tick(At(7.5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(changes[0].silent);
  EXPECT_TRUE(watch.MustStop(At(7.5)).ok());
}

// A rank that is silent for 30 s ends its group, because a stopped process ends nothing by itself.
TEST(RankWatchTest, LongSilenceStopsTheGroup) {
  RankWatch watch = Reporting();
  watch.Progress(1, 5, At(1));
  for (int second = 1; second <= 31; ++second) {
    watch.Progress(0, 5, At(second));
    watch.Tick(At(second));
    EXPECT_TRUE(watch.MustStop(At(second)).ok()) << second;
  }
  watch.Progress(0, 5, At(31.5));
  const absl::Status stop = watch.MustStop(At(31.5));
  EXPECT_EQ(stop.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(stop.message()),
              HasSubstr("rank 1 (pid 101) has not answered since 1970-01-01T00:16:41Z at step 5"));
  const GroupVerdict verdict = watch.Verdict(Exit(137), stop);
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.code, absl::StatusCode::kDeadlineExceeded);
}

// People read the machine's time, whatever clock the calls have.
TEST(RankWatchTest, TheReasonHasTheTimeForPeople) {
  RankWatchOptions options;
  options.ranks = 1;
  options.started = At(0);
  options.wall_time_of = [](absl::Time now) { return now + absl::Hours(24); };
  RankWatch watch(options);
  ASSERT_TRUE(watch.Hello({0, 1, 100}, At(1)).ok());
  for (int second = 1; second <= 32; ++second) watch.Tick(At(second));
  EXPECT_THAT(std::string(watch.MustStop(At(32)).message()), HasSubstr("has not answered since 1970-01-02T00:16:41Z"));
}

// A rank that has not reported yet counts as silent only after a longer time.
TEST(RankWatchTest, FirstWordTakesLonger) {
  RankWatch watch = Watch(1);
  for (int second = 1; second <= 30; ++second) EXPECT_TRUE(watch.Tick(At(second)).empty()) << second;
  const std::vector<SilenceChange> changes = watch.Tick(At(30.5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].what, "rank 0 (no report yet)");
  EXPECT_EQ(changes[0].since, kStart);
  EXPECT_TRUE(watch.MustStop(At(119)).ok());
  EXPECT_EQ(watch.MustStop(At(121)).code(), absl::StatusCode::kDeadlineExceeded);
}

// After the daemon itself was stopped, its ranks do not count as silent.
TEST(RankWatchTest, OwnPauseIsForgiven) {
  RankWatch watch = Reporting();
  EXPECT_TRUE(watch.Tick(At(60)).empty());
  EXPECT_TRUE(watch.MustStop(At(60)).ok());
  EXPECT_TRUE(watch.Tick(At(61)).empty());
  EXPECT_EQ(watch.Tick(At(62)).size() + watch.Tick(At(63)).size() + watch.Tick(At(64.5)).size(), 2u);
}

// Ranks that are done do not count as silent, and the group ends well when the launcher does.
TEST(RankWatchTest, AllDone) {
  RankWatch watch = Reporting();
  watch.Done(0, At(2));
  EXPECT_FALSE(watch.AllDone());
  watch.Done(1, At(3));
  EXPECT_TRUE(watch.AllDone());
  watch.StreamEnded(0, At(3));
  watch.StreamEnded(1, At(3));
  for (int second = 3; second < 10; ++second) EXPECT_TRUE(watch.Tick(At(second)).empty());
  EXPECT_TRUE(watch.MustStop(At(10)).ok());
  EXPECT_TRUE(watch.Verdict(Exit(0), absl::OkStatus()).ok);
  const GroupVerdict bad_exit = watch.Verdict(Exit(1), absl::OkStatus());
  EXPECT_FALSE(bad_exit.ok);
  EXPECT_EQ(bad_exit.message, "all ranks were done, but mpirun exited with status 1");
  EXPECT_EQ(watch.MustStop(At(34)).code(), absl::StatusCode::kDeadlineExceeded);
}

// A rank that gives up stops the group at once. Its error becomes the group's, whatever failures follow.
TEST(RankWatchTest, FirstFailureCounts) {
  RankWatch watch = Reporting();
  watch.Failed(1, absl::NotFoundError("no file /data/x"), At(2));
  watch.Failed(0, absl::UnavailableError("rank 1 is gone"), At(2.1));
  const absl::Status stop = watch.MustStop(At(2.1));
  EXPECT_EQ(stop.code(), absl::StatusCode::kNotFound);
  const GroupVerdict verdict = watch.Verdict(Exit(1), stop);
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.code, absl::StatusCode::kNotFound);
  EXPECT_EQ(verdict.message, "rank 1 (pid 101): no file /data/x");
}

// A launcher ends the group by itself only if a rank has reported a failure. It must be killed if a rank is silent, or
// if somebody else has stopped the group.
TEST(RankWatchTest, WhoEndsTheGroup) {
  RankWatch watch = Reporting();
  EXPECT_FALSE(watch.LauncherEndsByItself(absl::OkStatus()));
  EXPECT_FALSE(watch.LauncherEndsByItself(absl::DeadlineExceededError("rank 1 has not answered")));
  watch.Failed(1, absl::NotFoundError("no file /data/x"), At(2));
  EXPECT_TRUE(watch.LauncherEndsByItself(watch.MustStop(At(2))));
  EXPECT_FALSE(watch.LauncherEndsByItself(absl::CancelledError("stopped: job cancelled")));

  RankWatch gone = Reporting();
  gone.StreamEnded(1, At(2));
  EXPECT_FALSE(gone.LauncherEndsByItself(gone.MustStop(At(6))));
}

// After a rank's stream breaks, the launcher has launcher_grace to end the group itself.
TEST(RankWatchTest, GoneRank) {
  RankWatch watch = Reporting();
  watch.StreamEnded(1, At(2));
  EXPECT_TRUE(watch.MustStop(At(4.9)).ok());
  const absl::Status stop = watch.MustStop(At(5.1));
  EXPECT_EQ(stop.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(watch.Verdict(Exit(137), absl::OkStatus()).message,
            "rank 1 (pid 101) is gone without a word; mpirun exited with status 137");
  EXPECT_EQ(watch.Verdict(Exit(137), stop).message,
            "rank 1 (pid 101) is gone without a word; mpirun exited with status 137");
}

// If the streams of several ranks broke together, the rank that the launcher names counts as the first.
TEST(RankWatchTest, LauncherKnowsWhoDied) {
  RankWatch watch = Reporting();
  watch.StreamEnded(0, At(2));
  watch.StreamEnded(1, At(2));
  LauncherEnd launcher = Exit(137);
  launcher.said.rank = 1;
  launcher.said.signal = 9;
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 1 (pid 101) ended by signal 9 (Killed); mpirun exited with status 137");
  launcher.said.rank = 99;
  EXPECT_THAT(watch.Verdict(launcher, absl::OkStatus()).message, HasSubstr("rank 0 (pid 100)"));
}

// A launcher that names a process may name a rank that it killed itself. So the first broken stream decides which rank
// died first. The signal is reported only if the launcher named that rank.
TEST(RankWatchTest, LauncherNamesAProcess) {
  RankWatch watch = Reporting();
  LauncherEnd launcher = Exit(3);
  launcher.said.pid = 101;
  launcher.said.exit_status = 3;
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 1 (pid 101) exited with status 3; mpirun exited with status 3");
  watch.StreamEnded(0, At(2));
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 0 (pid 100) is gone without a word; mpirun exited with status 3");
  launcher.said.pid = 100;
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 0 (pid 100) exited with status 3; mpirun exited with status 3");
}

// The kernel's order of exits decides before the order of broken streams. Ranks that were done do not count.
TEST(RankWatchTest, KernelKnowsWhoDied) {
  RankWatch watch = Watch(3);
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(watch.Hello({rank, 3, 100 + rank}, At(1)).ok());
  watch.Done(2, At(2));
  for (uint32_t rank = 0; rank < 3; ++rank) watch.StreamEnded(rank, At(2));
  LauncherEnd launcher = Exit(9);
  launcher.said.pid = 100;
  launcher.said.signal = 9;
  watch.SetExitOrder({2, 77, 1, 0});
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 1 (pid 101) is gone without a word; mpirun exited with status 9");
  watch.SetExitOrder({0, 1});
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 0 (pid 100) ended by signal 9 (Killed); mpirun exited with status 9");
}

// After the daemon has stopped a group, the launcher's report describes only that stop and is ignored.
TEST(RankWatchTest, LauncherSpeaksOfOurStop) {
  RankWatch watch = Reporting();
  watch.StreamEnded(1, At(2));
  LauncherEnd launcher = Exit(15);
  launcher.said.rank = 0;
  launcher.said.signal = 15;
  launcher.last_words = "cannot go on";
  EXPECT_EQ(watch.Verdict(launcher, watch.MustStop(At(6))).message,
            "rank 1 (pid 101) is gone without a word; mpirun exited with status 15; last line of output: cannot go on");
}

// If the launcher ends before any rank has reported, the message has only its last line of output as the reason.
TEST(RankWatchTest, NothingWasHeard) {
  LauncherEnd launcher = Exit(127);
  launcher.last_words = "setpriv: failed to execute /x: No such file or directory";
  EXPECT_EQ(Watch(2).Verdict(launcher, absl::OkStatus()).message,
            "not all ranks are done, but mpirun exited with status 127; last line of output: setpriv: failed to "
            "execute /x: No such file "
            "or directory");
}

// A group that was told to stop ends as cancelled, whatever its ranks did on the way.
TEST(RankWatchTest, Stopped) {
  RankWatch watch = Reporting();
  watch.StreamEnded(0, At(2));
  const GroupVerdict verdict = watch.Verdict(Exit(1), absl::CancelledError("stopped: job cancelled"));
  EXPECT_EQ(verdict.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(verdict.message, "stopped: job cancelled");
}

// Hello refuses a rank that is out of range. It refuses a rank with another group size (started by the other library's
// mpirun). It refuses a second report.
TEST(RankWatchTest, HelloIsChecked) {
  RankWatch watch = Watch(2);
  EXPECT_EQ(watch.Hello({2, 2, 1}, At(0)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(watch.Hello({0, 1, 1}, At(0)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(watch.Hello({0, 2, 1}, At(0)).ok());
  EXPECT_EQ(watch.Hello({0, 2, 2}, At(0)).code(), absl::StatusCode::kAlreadyExists);
}

// A command that never says hello may run without a limit. It is finished when it exits with status 0.
TEST(RankWatchTest, ACommandNeedNotUseHooke) {
  RankWatch watch = CommandWatch(2);
  for (int minutes = 0; minutes <= 600; ++minutes) {
    EXPECT_TRUE(watch.Tick(At(60 * minutes)).empty()) << minutes;
    EXPECT_TRUE(watch.MustStop(At(60 * minutes)).ok()) << minutes;
  }
  EXPECT_TRUE(watch.Verdict(Exit(0), absl::OkStatus()).ok);
  EXPECT_FALSE(Watch(2).Verdict(Exit(0), absl::OkStatus()).ok) << "only a command may say nothing";
}

// A launcher that hangs starts no command. That ends the group, with the name of the rank that was not started.
TEST(RankWatchTest, ACommandThatIsNotStarted) {
  RankWatchOptions options;
  options.ranks = 3;
  options.first_rank = 1;
  options.ranks_here = 2;
  options.started = kStart;
  options.command = true;
  options.launcher = "orted";
  RankWatch watch(options);
  watch.Started(0, At(1));  // Runs elsewhere.
  watch.Started(1, At(1));
  std::vector<std::string> silent;
  for (int second = 0; second <= 300; ++second) {
    for (const SilenceChange& change : watch.Tick(At(second))) silent.push_back(change.what);
    EXPECT_TRUE(watch.MustStop(At(second)).ok()) << second;
  }
  EXPECT_THAT(silent, testing::ElementsAre("rank 2"));
  EXPECT_EQ(
      watch.MustStop(At(301)),
      absl::DeadlineExceededError("orted has not started rank 2 within 5m: its group was stopped; if it has ranks "
                                  "on several workers, their nodes must reach one another"));
  watch.Started(2, At(302));
  EXPECT_TRUE(watch.MustStop(At(1000)).ok());
}

// After the first hello of a command's rank, the other ranks have ten minutes for their hello. A rank that has said
// hello is watched like a rank of a job without a command.
TEST(RankWatchTest, ACommandsRanksSayHelloTogether) {
  RankWatch watch = CommandWatch(2);
  watch.Tick(At(3600));
  EXPECT_TRUE(watch.Hello({0, 2, 100}, At(3600)).ok());
  for (int second = 3600; second <= 4200; ++second) {
    watch.Progress(0, 1, At(second));
    EXPECT_TRUE(watch.Tick(At(second)).empty()) << second;
    EXPECT_TRUE(watch.MustStop(At(second)).ok()) << second;
  }
  watch.Progress(0, 1, At(4201));
  EXPECT_THAT(std::string(watch.MustStop(At(4201)).message()), HasSubstr("rank 1 has not answered since"));

  RankWatch silent = CommandWatch(1);
  EXPECT_TRUE(silent.Hello({0, 1, 100}, At(1)).ok());
  for (int second = 1; second <= 32; ++second) silent.Tick(At(second));
  EXPECT_EQ(silent.MustStop(At(32)).code(), absl::StatusCode::kDeadlineExceeded);
}

// A command's exit with a status other than 0 fails the job, and the message has the end of its stderr. The launcher
// first has some time to end by itself.
TEST(RankWatchTest, ACommandExits) {
  RankWatch watch = CommandWatch(2);
  watch.Exited(1, 3, "Traceback | ValueError: x", At(5));
  EXPECT_TRUE(watch.MustStop(At(7)).ok());
  const absl::Status stop = watch.MustStop(At(9));
  EXPECT_EQ(stop.code(), absl::StatusCode::kFailedPrecondition);
  for (const absl::Status& stopped : {absl::OkStatus(), stop}) {
    const GroupVerdict verdict = watch.Verdict(Exit(3), stopped);
    EXPECT_FALSE(verdict.ok);
    EXPECT_EQ(verdict.code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(verdict.message, "rank 1 exited with status 3; the end of its stderr: Traceback | ValueError: x");
  }
}

// A command that a signal killed is tried again. The exit of another rank is a consequence if the launcher saw the
// signal first.
TEST(RankWatchTest, ACommandIsKilled) {
  RankWatch watch = CommandWatch(2);
  watch.Exited(1, 128 + 9, "", At(5));
  EXPECT_EQ(watch.Verdict(Exit(137), absl::OkStatus()).code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(watch.Verdict(Exit(137), absl::OkStatus()).message, "rank 1 ended by signal 9 (Killed)");

  RankWatch other = CommandWatch(2);
  other.Exited(0, 1, "peer is gone", At(5));
  LauncherEnd end = Exit(137);
  end.said.rank = 1;
  end.said.signal = 9;
  const GroupVerdict verdict = other.Verdict(end, absl::OkStatus());
  EXPECT_EQ(verdict.code, absl::StatusCode::kUnavailable);
  EXPECT_THAT(verdict.message, HasSubstr("rank 1 ended by signal 9 (Killed)"));
}

// If a command's rank reported a failure, that becomes the group's failure, and not the exit status, in whatever order
// the two are read. An error whose code says nothing about a new try, such as an exception, fails the job.
TEST(RankWatchTest, ACommandsOwnWordsWin) {
  for (const bool exit_first : {false, true}) {
    RankWatch watch = CommandWatch(1);
    EXPECT_TRUE(watch.Hello({0, 1, 100}, At(1)).ok());
    if (exit_first) watch.Exited(0, 1, "Traceback", At(2));
    watch.Failed(0, absl::UnknownError("ValueError: x"), At(2));
    if (!exit_first) watch.Exited(0, 1, "Traceback", At(2));
    const GroupVerdict verdict = watch.Verdict(Exit(1), absl::OkStatus());
    EXPECT_EQ(verdict.code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(verdict.message, "rank 0 (pid 100): ValueError: x");
  }
  RankWatch watch = CommandWatch(1);
  EXPECT_TRUE(watch.Hello({0, 1, 100}, At(1)).ok());
  watch.Failed(0, absl::UnavailableError("server a:1 does not answer"), At(2));
  watch.Exited(0, 1, "Traceback", At(2));
  EXPECT_EQ(watch.Verdict(Exit(1), absl::OkStatus()).code, absl::StatusCode::kUnavailable);
}

// The exit status of a rank counts as the cause, and the broken stream of another rank does not. The launcher may have
// killed the rank of the broken stream.
TEST(RankWatchTest, ACommandsExitStatusTellsMoreThanABrokenStream) {
  RankWatch watch = CommandWatch(2);
  EXPECT_TRUE(watch.Hello({0, 2, 100}, At(1)).ok());
  EXPECT_TRUE(watch.Hello({1, 2, 101}, At(1)).ok());
  watch.StreamEnded(1, At(2));
  watch.Exited(0, 3, "", At(2));
  EXPECT_EQ(watch.Verdict(Exit(3), absl::OkStatus()).message, "rank 0 (pid 100) exited with status 3");
}

// A rank that reported that it lost another one exits in consequence. Its exit status does not become the reason,
// although the other rank's stream only broke.
TEST(RankWatchTest, ACommandThatLostARankExitsInConsequence) {
  RankWatch watch = CommandWatch(2);
  EXPECT_TRUE(watch.Hello({0, 2, 100}, At(1)).ok());
  EXPECT_TRUE(watch.Hello({1, 2, 101}, At(1)).ok());
  watch.StreamEnded(0, At(2));
  watch.Failed(1, absl::UnavailableError("lost rank 0"), At(2));
  watch.Exited(1, 1, "hooke: lost rank 0", At(2));
  EXPECT_EQ(watch.Verdict(Exit(1), absl::OkStatus()).code, absl::StatusCode::kUnavailable);
  watch.Exited(0, 128 + 9, "", At(3));
  EXPECT_EQ(watch.Verdict(Exit(1), absl::OkStatus()).message, "rank 0 (pid 100) ended by signal 9 (Killed)");
}

// A part of a group on several workers judges its own ranks. If mpirun names a rank on another worker, the message
// names that rank and its worker.
TEST(RankWatchTest, PartOfAGroup) {
  RankWatchOptions options;
  options.ranks = 4;
  options.first_rank = 2;
  options.ranks_here = 2;
  options.elsewhere = {{0, 2, "w0"}};
  options.started = absl::UnixEpoch();
  RankWatch watch(options);
  EXPECT_EQ(watch.Hello({1, 4, 11}, absl::UnixEpoch()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(watch.Hello({2, 2, 11}, absl::UnixEpoch()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(watch.Hello({2, 4, 12}, absl::UnixEpoch()).ok());
  EXPECT_TRUE(watch.Hello({3, 4, 13}, absl::UnixEpoch()).ok());
  LauncherEnd launcher;
  launcher.exit = "mpirun exited with status 137";
  launcher.said.rank = 1;
  launcher.said.signal = 9;
  EXPECT_EQ(watch.Verdict(launcher, absl::OkStatus()).message,
            "rank 1 on worker w0 ended by signal 9 (Killed); mpirun exited with status 137");
  watch.Done(2, absl::UnixEpoch());
  EXPECT_FALSE(watch.AllDone());
  watch.Done(3, absl::UnixEpoch());
  EXPECT_TRUE(watch.AllDone());
}

}  // namespace
}  // namespace hooke
