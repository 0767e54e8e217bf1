#include "client/watch/watch_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"
#include "client/history/loss_chart.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::Time NowOf(const v1::JobStatus& job) { return absl::FromUnixMillis(job.now_unix_ms()); }

// While the coordinator is away, a terminal keeps the picture in grey, below a line that says since when. When the
// coordinator is back, the normal picture takes its place.
TEST(WatchScreenTest, TerminalGreysThePictureWhileTheCoordinatorIsAway) {
  const v1::JobStatus job = RunningJob("fashion-1");
  std::ostringstream out;
  const auto screen = MakeTerminalScreen(out, {100, 24, absl::UTCTimeZone()});
  screen->Show(job, NowOf(job));
  const std::string picture = out.str();
  EXPECT_THAT(picture, Not(HasSubstr("\x1b")));
  out.str("");
  screen->Away(&job, NowOf(job), NowOf(job) + absl::Seconds(5));
  const std::string away = out.str();
  EXPECT_THAT(away, testing::StartsWith("\x1b[5A\x1b[Jcoordinator away since 01:47:23; showing what was known then\n"
                                        "\x1b[2mfashion-1  running for 0:42"));
  size_t dimmed = 0, ended = 0;
  for (size_t at = 0; (at = away.find("\x1b[2m", at)) != std::string::npos; ++at) ++dimmed;
  for (size_t at = 0; (at = away.find("\x1b[0m\n", at)) != std::string::npos; ++at) ++ended;
  EXPECT_EQ(dimmed, 5u);
  EXPECT_EQ(ended, 5u);
  out.str("");
  screen->Back(NowOf(job), NowOf(job) + absl::Seconds(9));
  screen->Show(job, NowOf(job));
  EXPECT_EQ(out.str(), absl::StrCat("\x1b[6A\x1b[J", picture));
}

// Before the first status only the line about the coordinator is drawn. A narrow terminal cuts it.
TEST(WatchScreenTest, TerminalBeforeTheFirstStatus) {
  std::ostringstream out;
  const auto screen = MakeTerminalScreen(out, {20, 24, absl::UTCTimeZone()});
  screen->Away(nullptr, absl::FromUnixSeconds(0), absl::FromUnixSeconds(5));
  EXPECT_EQ(out.str(), "coordinator away si…\n");
}

// A terminal with room for it has a chart of the loss below the groups. The picture stays within the terminal.
TEST(WatchScreenTest, TerminalDrawsTheLoss) {
  std::vector<v1::HistoryPoint> points(500);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].set_group(0);
    points[i].set_step(i + 1);
    points[i].set_loss(1.0 / static_cast<double>(i + 1));
  }
  for (const int height : {15, 20, 24}) {
    std::ostringstream out;
    WatchViewOptions options;
    options.height = height;
    const v1::JobStatus job = RunningJob("fashion-1");
    MakeTerminalScreen(out, options, LossChart(points))->Show(job, NowOf(job));
    EXPECT_EQ(absl::StrContains(out.str(), "loss, steps 1 to 528"), height >= 20) << height;
    const std::string text = out.str();
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), height);
  }
}

// Plain output has one line when the coordinator goes and one when it is back, without escape sequences.
TEST(WatchScreenTest, PlainLines) {
  const v1::JobStatus job = RunningJob("fashion-1");
  std::ostringstream out;
  const auto screen = MakePlainScreen(out, {absl::Seconds(5), absl::UTCTimeZone()});
  screen->Away(&job, NowOf(job), NowOf(job) + absl::Seconds(5));
  screen->Back(NowOf(job), NowOf(job) + absl::Seconds(9));
  EXPECT_EQ(out.str(),
            "01:47:28  coordinator away since 01:47:23; trying again\n"
            "01:47:32  coordinator back after 0:09\n");
}

// In JSON output all lines stay JSON: messages for people go to `err`.
TEST(WatchScreenTest, JsonLines) {
  std::ostringstream out, err;
  const auto screen = MakeJsonScreen(out, err);
  screen->Away(nullptr, absl::FromUnixSeconds(0), absl::FromUnixSeconds(5));
  screen->Back(absl::FromUnixSeconds(0), absl::FromUnixSeconds(7));
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), HasSubstr("hooke: coordinator away since "));
  EXPECT_THAT(err.str(), HasSubstr("hooke: coordinator back after 0:07\n"));
}

}  // namespace
}  // namespace hooke
