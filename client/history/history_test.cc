// Shows that a history becomes CSV that programs read, a picture that is well-formed XML, and a chart.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/history/curves.h"
#include "client/history/history_svg.h"
#include "client/history/loss_chart.h"
#include "client/history/ticks.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

v1::HistoryPoint Group(uint32_t group, uint64_t step, double loss) {
  v1::HistoryPoint point;
  point.set_group(group);
  point.set_unix_ms(1000 * static_cast<int64_t>(step));
  point.set_step(step);
  point.set_loss(loss);
  return point;
}

v1::HistoryPoint Center(uint64_t step, double accuracy) {
  v1::HistoryPoint point;
  point.set_unix_ms(1000 * static_cast<int64_t>(step));
  point.set_step(step);
  point.set_loss(0.5);
  point.set_accuracy(accuracy);
  return point;
}

TEST(TicksTest, AreRoundAndIncludeBothEnds) {
  EXPECT_THAT(RoundTicks(0, 1, 5).values, ElementsAre(0, 0.2, 0.4, 0.6000000000000001, 0.8, 1));
  EXPECT_THAT(RoundTicks(0, 1123, 6).values, ElementsAre(0, 200, 400, 600, 800, 1000, 1200));
  const Ticks ticks = RoundTicks(0.31, 0.34, 4);
  EXPECT_EQ(TickText(ticks, ticks.low), "0.31");
  EXPECT_EQ(TickText(ticks, ticks.high), "0.34");
  for (const double value : {0.0, -3.0, 1e300, 1e-300}) {
    const Ticks one = RoundTicks(value, value, 5);
    EXPECT_LE(one.low, value);
    EXPECT_GT(one.high, one.low);
    EXPECT_LE(one.values.size(), 12u) << value;
  }
}

// If a group goes back to an earlier step, a new curve begins. Values that are not numbers are left out.
TEST(CurvesTest, OfOneJobEachGroupAndOfTwoEachJob) {
  const PlottedJob job = {"a-1",
                          {Group(0, 1, 2), Group(0, 9, kNan), Group(0, 5, 1), Group(0, 3, 1.5), Group(1, 1, 2),
                           Center(5, 0.5), Center(9, kNan)}};
  const std::vector<Curve> losses = LossCurves({job}, PlotAxis::kSteps);
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_EQ(losses[0].points.size(), 2u);
  EXPECT_EQ(losses[0].label, "group 0");
  EXPECT_EQ(losses[1].label, "");
  EXPECT_EQ(losses[1].color, losses[0].color);
  EXPECT_EQ(losses[2].label, "group 1");
  EXPECT_TRUE(losses[3].center);
  const std::vector<Curve> two = LossCurves({job, {"b-2", {Group(0, 4, 1)}}}, PlotAxis::kTime);
  ASSERT_EQ(two.size(), 5u);
  EXPECT_EQ(two[0].label, "a-1");
  EXPECT_EQ(two[2].label, "");
  EXPECT_EQ(two[4].label, "b-2");
  EXPECT_EQ(two[4].color, 1u);
  EXPECT_EQ(two[4].points[0].first, 0) << "time counts from the job's first point";
  const std::vector<Curve> accuracies = AccuracyCurves({job}, PlotAxis::kSteps);
  ASSERT_EQ(accuracies.size(), 1u);
  EXPECT_THAT(accuracies[0].points, ElementsAre(std::make_pair(5.0, 0.5)));
}

TEST(HistorySvgTest, HasBothPanelsAndEscapesNames) {
  const std::string svg = HistorySvg(
      {{"<a&\"b\">\x1b-1", {Group(0, 1, 2), Group(0, 1000, 1), Center(1000, 0.75)}}, {"c-2", {Group(0, 1, 3)}}},
      PlotAxis::kSteps);
  EXPECT_THAT(svg, HasSubstr("&lt;a&amp;&quot;b&quot;&gt; -1"));
  EXPECT_THAT(svg, Not(HasSubstr("<a&")));
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
  EXPECT_THAT(svg, HasSubstr("accuracy of the center"));
  EXPECT_THAT(svg, HasSubstr(">1000</text>"));
  EXPECT_THAT(svg, HasSubstr(">c-2</text>"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_TRUE(absl::EndsWith(svg, "</svg>\n"));
  EXPECT_EQ(HistorySvg({{"a-1", {Group(0, 1, kNan)}}}, PlotAxis::kSteps), "");
}

TEST(HistorySvgTest, OverTimeChoosesAUnit) {
  const auto over = [](uint64_t seconds) {
    return HistorySvg({{"a-1", {Group(0, 1, 2), Group(0, 1 + seconds, 1)}}}, PlotAxis::kTime);
  };
  EXPECT_THAT(over(100), HasSubstr("in seconds"));
  EXPECT_THAT(over(1000), HasSubstr("in minutes"));
  EXPECT_THAT(over(100000), HasSubstr("in hours"));
}

TEST(LossChartTest, DrawsAFallingLossInTheWidthOfTheScreen) {
  std::vector<v1::HistoryPoint> points;
  for (uint64_t step = 1; step <= 20000; ++step)
    points.push_back(Group(0, step, 2.0 - static_cast<double>(step) / 20000));
  points.push_back(Center(5, 0.5));
  LossChart chart(points);
  const std::vector<std::string> lines = chart.Lines(60, 5);
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(DisplayWidth(lines[i]), 60) << lines[i];
  EXPECT_THAT(lines[0], HasSubstr("    2 \xe2\xa0\x89")) << "the first dots are at the top";
  EXPECT_EQ(lines[4], "    loss, steps 1 to 20000");
  EXPECT_TRUE(LossChart().Lines(60, 5).empty());
  EXPECT_TRUE(chart.Lines(15, 5).empty());
}

// The chart goes on with what the watcher hears. The same step counts once.
TEST(LossChartTest, TakesStatuses) {
  LossChart chart;
  v1::JobStatus job;
  v1::GroupStatus& group = *job.add_groups();
  group.set_task(v1::GroupStart::TRAIN);
  for (const uint64_t step : {5, 5, 6, 7, 8, 8, 9}) {
    EXPECT_TRUE(chart.Lines(40, 3).empty());
    group.mutable_progress()->set_step(step);
    group.mutable_progress()->set_loss(1);
    chart.Add(job);
  }
  const std::vector<std::string> lines = chart.Lines(40, 3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "    loss, steps 5 to 9");
}

}  // namespace
}  // namespace hooke
