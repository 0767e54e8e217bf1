// The coordinator of a real cluster gets SIGKILL. docs/see.md promises that what was shown five seconds before is there
// afterwards, so the test runs alone.

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/faults_fixture.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::ContainsRegex;
using ::testing::SizeIs;

// The promise: a point that was shown for so long outlives the coordinator.
constexpr int64_t kShownMs = 5000;

// A row of `hooke metrics --csv`.
struct Row {
  int64_t unix_ms = 0;
  uint64_t step = 0;
  std::string line;
};
// By series, each in the order of the rows. The series of a group is named by its index, the center's by nothing.
using History = std::map<std::string, std::vector<Row>>;

int64_t Newest(const History& history) {
  int64_t newest = 0;
  for (const auto& [series, rows] : history) newest = std::max(newest, rows.back().unix_ms);
  return newest;
}

// Returns the lines of all rows that are not newer than `until_unix_ms`, in order.
std::vector<std::string> LinesUntil(const History& history, int64_t until_unix_ms) {
  std::vector<std::string> lines;
  for (const auto& [series, rows] : history) {
    for (const Row& row : rows) {
      if (row.unix_ms <= until_unix_ms) lines.push_back(row.line);
    }
  }
  return lines;
}

class HistoryTest : public FaultsFixture {
 protected:
  // Returns the job's history; empty: it has no points yet.
  History Read() const {
    const ProgramResult csv = cluster_->Hooke({"metrics", id_, "--csv"});
    if (absl::StrContains(csv.output, "has no points in its history yet")) return {};
    EXPECT_EQ(csv.status, 0) << csv.output;
    History history;
    for (absl::string_view line : absl::StrSplit(csv.output, '\n', absl::SkipEmpty())) {
      if (absl::StartsWith(line, "job,")) continue;
      const std::vector<std::string> cells = absl::StrSplit(line, ',');
      Row row;
      row.line = std::string(line);
      if (cells.size() != 15 || !absl::SimpleAtoi(cells[3], &row.unix_ms) || !absl::SimpleAtoi(cells[4], &row.step)) {
        ADD_FAILURE() << "no row of a point: " << line;
        return {};
      }
      history[cells[2]].push_back(std::move(row));
    }
    return history;
  }

  // Reads the history of the job that runs until both groups have a point that is at least so much newer than
  // `unix_ms`. Returns what was read last.
  History AwaitPoints(int64_t unix_ms, int64_t newer_ms) const {
    History history;
    for (const absl::Time end = absl::Now() + kFaultLimit; absl::Now() < end; absl::SleepFor(absl::Milliseconds(100))) {
      history = Read();
      const auto is_newer = [&](const std::string& group) {
        return history.count(group) > 0 && history[group].back().unix_ms >= unix_ms + newer_ms;
      };
      if (is_newer("0") && is_newer("1")) return history;
    }
    ADD_FAILURE() << "no new points: " << cluster_->Log(id_);
    return history;
  }

  // Kills the coordinator five seconds after the newest point of `history`, and restarts it. The points of `history`
  // are there again, and new ones follow. Sets `history` to all of them.
  void KillAndCompare(History& history) {
    const int64_t shown_at = Newest(history);
    const History shown = AwaitPoints(shown_at, kShownMs);
    cluster_->SignalServer(0, SIGKILL);
    ASSERT_TRUE(cluster_->RestartServer(0).ok());
    const std::vector<std::string> promised = LinesUntil(shown, shown_at);
    ASSERT_GE(promised.size(), 2u);
    EXPECT_EQ(LinesUntil(Read(), shown_at), promised);
    history = AwaitPoints(Newest(shown), 1);
    EXPECT_EQ(LinesUntil(history, shown_at), promised);
    for (const auto& [series, rows] : history) {
      const auto goes_back = [](const Row& a, const Row& b) { return b.unix_ms < a.unix_ms || b.step < a.step; };
      EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end(), goes_back), rows.end()) << "series " << series;
    }
  }
};

// What a user sees of a job that has ended. Its notices are those in its log.
struct EndedJob {
  std::string csv, log, status;
};

// One job has ended, in which a rank was killed. Another one trains. The coordinator gets SIGKILL and is restarted,
// twice. Of the running job every point is there again that was at least five seconds old, with the same values, and
// new ones follow. Of the ended job all points, its log with the death in it, its end, its center, and the steps and
// losses of its groups are the same as before.
TEST_F(HistoryTest, SurvivesTheDeathOfTheCoordinator) {
  ASSERT_NO_FATAL_FAILURE(StartJob({}, 60));
  const auto ranks = cluster_->RankPids(id_, 1);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGKILL);
  ASSERT_NO_FATAL_FAILURE(ExpectSuccess());
  const std::string ended_id = id_;
  const auto show_ended = [&] {
    const auto job = cluster_->Status(ended_id);
    EXPECT_TRUE(job.ok()) << job.status();
    v1::JobStatus end = job.value_or(v1::JobStatus());
    end.clear_notices();
    end.clear_now_unix_ms();
    return EndedJob{cluster_->Hooke({"metrics", ended_id, "--csv"}).output, cluster_->Log(ended_id), end.DebugString()};
  };
  const EndedJob ended = show_ended();
  ASSERT_THAT(ended.csv, ContainsRegex("\n[^\n]*,center,"));
  ASSERT_THAT(ended.log, ContainsRegex("coordinator group 1 .*signal 9"));

  const auto id = cluster_->Submit(ToYaml({cluster_->folder(), kLongEpochs}));
  ASSERT_TRUE(id.ok()) << id.status();
  id_ = *id;
  // The first kill may come at any time between two writes of the history. The second one comes late in such an
  // interval, because the restarted coordinator counts the interval from its first point.
  History history = AwaitPoints(0, 1);
  ASSERT_NO_FATAL_FAILURE(KillAndCompare(history));
  ASSERT_NO_FATAL_FAILURE(KillAndCompare(history));

  const EndedJob again = show_ended();
  EXPECT_EQ(again.csv, ended.csv);
  EXPECT_EQ(again.log, ended.log);
  EXPECT_EQ(again.status, ended.status);
}

}  // namespace
}  // namespace hooke
