// Shows that histories stay in bounded space, finest at their end, and come back from their records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "server/history/history_book.h"
#include "server/history/history_records.h"
#include "server/history/series.h"
#include "server/records/job_records.h"

namespace hooke {
namespace {

HistoryPoint PointAt(int64_t unix_ms, uint64_t step) {
  HistoryPoint point;
  point.unix_ms = unix_ms;
  point.step = step;
  point.loss = 1.0 / static_cast<double>(step);
  return point;
}

int64_t LargestGap(const std::vector<HistoryPoint>& points, size_t first, size_t last) {
  int64_t gap = 0;
  for (size_t i = first + 1; i <= last; ++i) gap = std::max(gap, points[i].unix_ms - points[i - 1].unix_ms);
  return gap;
}

// Adds one point a second, for 20,000 s or for a day, with several bounds. At each time the series is within its bound
// and in order of time, and has its first and last points. The newest points are one second apart, and no gap between
// older points is too large.
TEST(SeriesTest, KeepsTheNewestFinestInItsBound) {
  for (const size_t points_max : {8u, 23u, 512u}) {
    Series series({points_max, 500});
    const int64_t seconds = points_max == 512 ? 86400 : 20000;
    for (int64_t second = 1; second <= seconds; ++second) {
      series.Add(PointAt(second * 1000, static_cast<uint64_t>(second)));
      ASSERT_LE(series.older().size() + series.newer().size(), points_max);
      if (second % 997 != 0) continue;
      const std::vector<HistoryPoint> points = series.points();
      ASSERT_EQ(points.front().step, 1u);
      ASSERT_EQ(points.back().step, static_cast<uint64_t>(second));
      ASSERT_TRUE(std::is_sorted(points.begin(), points.end(),
                                 [](const HistoryPoint& a, const HistoryPoint& b) { return a.unix_ms < b.unix_ms; }));
      const size_t newest = points.size() - std::max<size_t>(2, points_max / 8);
      ASSERT_EQ(LargestGap(points, newest, points.size() - 1), 1000) << "at second " << second;
      const int64_t even = second * 1000 / static_cast<int64_t>(points_max / 4);
      ASSERT_LE(LargestGap(points, 0, points.size() - 1), std::max<int64_t>(4 * even, 1000)) << "at second " << second;
    }
  }
}

TEST(SeriesTest, FewPointsStayAsTheyAre) {
  std::vector<HistoryPoint> points = {PointAt(1, 1), PointAt(2, 2)};
  EXPECT_EQ(Thinned(points, 2).size(), 2u);
  points.push_back(PointAt(3, 3));
  const std::vector<HistoryPoint> thinned = Thinned(points, 2);
  ASSERT_EQ(thinned.size(), 2u);
  EXPECT_EQ(thinned[0].step, 1u);
  EXPECT_EQ(thinned[1].step, 3u);
}

// Reports that come in a burst cost no room, but the last of them is kept. A clock that goes back keeps the order.
TEST(SeriesTest, TakesBurstsAndAClockThatGoesBack) {
  Series series({512, 500});
  for (uint64_t step = 1; step <= 100; ++step) series.Add(PointAt(10000 + static_cast<int64_t>(step), step));
  ASSERT_EQ(series.points().size(), 2u);
  EXPECT_EQ(series.points().back().step, 100u);
  series.Add(PointAt(5000, 101));
  EXPECT_EQ(series.points().back().step, 101u);
  EXPECT_EQ(series.points().back().unix_ms, 10100);
}

// A time that a rank reports is cut to what a stored record has room for. Otherwise a record could grow beyond its
// bound.
TEST(SeriesTest, MillisecondsOfAReport) {
  EXPECT_EQ(StoredMilliseconds(0), 0u);
  EXPECT_EQ(StoredMilliseconds(1.2345), 1235u);
  EXPECT_EQ(StoredMilliseconds(-1), 0u);
  EXPECT_EQ(StoredMilliseconds(std::nan("")), 0u);
  EXPECT_EQ(StoredMilliseconds(1e300), (uint64_t{1} << 35) - 1);
}

TEST(SeriesTest, AReportWithoutANewStepOnlyCorrectsTheLoss) {
  Series series({512, 500});
  series.Add(PointAt(1000, 7));
  HistoryPoint again = PointAt(9000, 7);
  EXPECT_FALSE(series.Add(again).newer);
  again.loss = 0.25;
  EXPECT_TRUE(series.Add(again).newer);
  ASSERT_EQ(series.points().size(), 1u);
  EXPECT_EQ(series.points()[0].loss, 0.25);
  EXPECT_EQ(series.points()[0].unix_ms, 1000);
}

HistoryEntry Entry(const std::string& job_id, uint32_t groups, SeriesKey series, int64_t second) {
  HistoryPoint point = PointAt(1700000000000 + second * 1000, static_cast<uint64_t>(second) + (uint64_t{1} << 40));
  point.epoch = 1e9 / 3;
  point.samples_per_s = 1e9 / 7;
  point.exchange_ms = 1e9 / 9;
  point.accuracy = 1.0 / 3;
  point.center_distance = 1e-9 / 3;
  point.staleness = 1e9 / 11;
  point.computing_ms = point.collectives_ms = point.exchanging_ms = StoredMilliseconds(1e9);
  return {job_id, groups, series, point};
}

// The records of a job of the most groups and of one of few stay below 2 MiB, however long it runs.
TEST(HistoryBookTest, AJobTakesLessThanTwoMebibytes) {
  for (const uint32_t groups : {1u, 4u, 1024u}) {
    HistoryBook book;
    Records stored;
    for (int64_t second = 1; second <= (groups > 4 ? 200 : 1500); ++second) {
      for (SeriesKey group = 0; group < groups; ++group)
        book.Add(Entry("j-1", groups, group, second), absl::Seconds(second));
      book.Add(Entry("j-1", groups, kCenterSeries, second), absl::Seconds(second));
      if (!book.IsDue(absl::Seconds(second))) continue;
      for (auto& [job, records] : book.Take()) {
        for (auto& [key, value] : records) stored[key] = value;
      }
      book.Done(true, absl::Seconds(second), [](const std::string&) { return false; });
    }
    size_t bytes = 0;
    for (const auto& [key, value] : stored) bytes += key.size() + value.size();
    EXPECT_LT(bytes, size_t{2} << 20) << groups << " groups";
    EXPECT_EQ(SeriesFrom(stored)->size(), groups + 1);
  }
}

// Records are stored at most every three seconds. A history that is loaded from them has the same points.
TEST(HistoryBookTest, ComesBackFromItsRecords) {
  HistoryBook book, again;
  for (int64_t second = 1; second <= 300; ++second) {
    book.Add(Entry("j-7", 2, 0, second), absl::Seconds(second));
    if (second % 100 == 0) book.Add(Entry("j-7", 2, kCenterSeries, second), absl::Seconds(second));
  }
  EXPECT_FALSE(book.IsDue(absl::Seconds(3)));
  EXPECT_TRUE(book.IsDue(absl::Seconds(4)));
  const std::map<std::string, Records> taken = book.Take();
  EXPECT_FALSE(book.IsDue(absl::Hours(1)));
  for (const auto& [key, value] : taken.at("j-7")) EXPECT_EQ(key.rfind(HistoryPrefix(7), 0), 0u) << key;
  again.Load("j-7", 2, *SeriesFrom(taken.at("j-7")));
  const std::vector<v1::HistoryPoint> before = book.Points("j-7"), after = again.Points("j-7");
  ASSERT_EQ(before.size(), after.size());
  ASSERT_EQ(before.size(), 303u);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(before[i].SerializeAsString(), after[i].SerializeAsString());
  EXPECT_EQ(before[0].group(), 0u);
  EXPECT_FALSE(before[302].has_group());
  EXPECT_DOUBLE_EQ(before[302].accuracy(), 1.0 / 3);
  EXPECT_EQ(after[0].computing_ms(), StoredMilliseconds(1e9));
}

// An older version stored points without distance, staleness and times, and more of them in a job of many groups. They
// come back as they are, thinned to the present bound.
TEST(HistoryBookTest, OldRecordsComeBack) {
  std::vector<HistoryPoint> old;
  for (int64_t second = 1; second <= 512; ++second)
    old.push_back(PointAt(second * 1000, static_cast<uint64_t>(second)));
  const absl::StatusOr<std::map<SeriesKey, StoredSeries>> stored = SeriesFrom({{OlderKey(7, 3), HistoryRecord(old)}});
  ASSERT_TRUE(stored.ok()) << stored.status();
  HistoryBook book;
  book.Load("j-7", 47, *stored);
  const std::vector<v1::HistoryPoint> points = book.Points("j-7");
  EXPECT_LE(points.size(), SeriesPointsMax(47));
  EXPECT_GT(points.size(), SeriesPointsMax(47) / 2);
  EXPECT_EQ(points.front().step(), 1u);
  EXPECT_EQ(points.back().step(), 512u);
  EXPECT_FALSE(points.back().has_center_distance());
  EXPECT_FALSE(points.back().has_staleness());
  EXPECT_EQ(points.back().computing_ms() + points.back().collectives_ms() + points.back().exchanging_ms(), 0u);
}

// After a failed write the same records wait again. A job that has ended leaves the memory once its records are stored.
TEST(HistoryBookTest, LeavesTheMemoryOnceItIsStored) {
  HistoryBook book;
  const auto ended = [](const std::string& job_id) { return job_id == "j-1"; };
  book.Add(Entry("j-1", 1, 0, 1), absl::Seconds(1));
  book.Add(Entry("j-2", 1, 0, 1), absl::Seconds(1));
  EXPECT_EQ(book.Take().size(), 2u);
  book.Done(false, absl::Seconds(5), ended);
  EXPECT_FALSE(book.IsDue(absl::Seconds(7)));
  EXPECT_TRUE(book.IsDue(absl::Seconds(8)));
  EXPECT_EQ(book.Points("j-1").size(), 1u);
  EXPECT_EQ(book.Take().size(), 2u);
  book.Done(true, absl::Seconds(8), ended);
  EXPECT_TRUE(book.Points("j-1").empty());
  EXPECT_EQ(book.Points("j-2").size(), 1u);
  book.Forget("j-2");
  EXPECT_TRUE(book.Points("j-2").empty());
}

TEST(HistoryRecordsTest, ADamagedRecordIsNamed) {
  const auto series = SeriesFrom({{OlderKey(3, 1), "\xff"}});
  EXPECT_EQ(series.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(series.status().message()), testing::HasSubstr(OlderKey(3, 1)));
}

}  // namespace
}  // namespace hooke
