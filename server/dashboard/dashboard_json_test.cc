#include "server/dashboard/dashboard_json.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hooke {
namespace {

v1::HistoryPoint Point(int group, int64_t unix_ms) {
  v1::HistoryPoint point;
  if (group >= 0) point.set_group(static_cast<uint32_t>(group));
  point.set_unix_ms(unix_ms);
  return point;
}

// Names are those of the message. A text stays the text that it was, whatever is in it.
TEST(DashboardJsonTest, HasTheNamesOfMessages) {
  v1::JobStatus job;
  job.set_job_id("a-1");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_reason("</script><b>\"\\\n");
  job.mutable_center()->set_loss(std::numeric_limits<double>::quiet_NaN());
  job.set_submitted_unix_ms(1700000000000);
  const nlohmann::json json = nlohmann::json::parse(ToJson(job));
  EXPECT_EQ(json["job_id"], "a-1");
  EXPECT_EQ(json["state"], "JOB_STATE_RUNNING");
  EXPECT_EQ(json["reason"], "</script><b>\"\\\n");
  EXPECT_EQ(json["center"]["loss"], "NaN");
  EXPECT_EQ(json["submitted_unix_ms"], "1700000000000");
}

// A history that is short enough stays as it is. A long one loses points evenly, and no series its last one.
TEST(DashboardJsonTest, ThinsLongHistories) {
  std::vector<v1::HistoryPoint> points;
  for (int group : {0, 1, -1}) {
    const int count = group == -1 ? 7 : 1000;
    for (int i = 1; i <= count; ++i) points.push_back(Point(group, i));
  }
  EXPECT_EQ(ThinHistory(points, 0, 2007).size(), 2007u);
  for (const size_t most : {1000, 100, 10, 1}) {
    const std::vector<v1::HistoryPoint> thin = ThinHistory(points, 0, most);
    EXPECT_LE(thin.size(), most + 3);
    std::map<int64_t, int64_t> last;
    for (const v1::HistoryPoint& point : thin) last[point.has_group() ? int64_t{point.group()} : -1] = point.unix_ms();
    EXPECT_EQ(last, (std::map<int64_t, int64_t>{{0, 1000}, {1, 1000}, {-1, 7}})) << most;
  }
  const std::vector<v1::HistoryPoint> newer = ThinHistory(points, 998, 100);
  ASSERT_EQ(newer.size(), 4u);
  EXPECT_EQ(newer[0].unix_ms(), 999);
  EXPECT_TRUE(ThinHistory({}, 0, 10).empty());
}

TEST(DashboardJsonTest, LogsMayHaveAnyBytes) {
  const nlohmann::json json = nlohmann::json::parse(LogJson("a\xff<\n", 4));
  EXPECT_EQ(json["text"], "a\xef\xbf\xbd<\n");
  EXPECT_EQ(json["next_offset"], 4);
  EXPECT_EQ(nlohmann::json::parse(ErrorJson(absl::NotFoundError("no \"job\"")))["error"], "no \"job\"");
}

}  // namespace
}  // namespace hooke
