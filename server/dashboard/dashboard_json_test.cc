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
  const nlohmann::json json = nlohmann::json::parse(*ToJson(job));
  EXPECT_EQ(json["job_id"], "a-1");
  EXPECT_EQ(json["state"], "JOB_STATE_RUNNING");
  EXPECT_EQ(json["reason"], "</script><b>\"\\\n");
  EXPECT_EQ(json["center"]["loss"], "NaN");
  EXPECT_EQ(json["submitted_unix_ms"], "1700000000000");
}

// A message that JSON cannot express gives an error, and no text.
TEST(DashboardJsonTest, SaysWhatIsNoJson) {
  v1::StatusDetails details;
  details.add_details()->set_type_url("type.googleapis.com/hooke.v1.NoSuchMessage");
  details.mutable_details(0)->set_value("x");
  EXPECT_EQ(ToJson(details).status().code(), absl::StatusCode::kInternal);
}

// A list has plain numbers, and null for what is not known.
TEST(DashboardJsonTest, RowsAndViews) {
  JobRow row;
  row.job_id = "a-1";
  row.state = v1::JOB_STATE_QUEUED;
  row.reason = "\xff<";
  row.accuracy = std::numeric_limits<double>::quiet_NaN();
  row.submitted_unix_ms = 1700000000000;
  row.owner = "alice";
  const nlohmann::json list = nlohmann::json::parse(RowsJson({7, true, {row}, 3}, "s-7", 5));
  EXPECT_EQ(list["version"], "s-7");
  EXPECT_EQ(list["left_out"], 3);
  EXPECT_EQ(list["rows"][0]["reason"], "\xef\xbf\xbd<");
  EXPECT_EQ(list["rows"][0]["submitted_unix_ms"], 1700000000000);
  EXPECT_EQ(list["rows"][0]["owner"], "alice");
  EXPECT_TRUE(list["rows"][0]["accuracy"].is_null());
  EXPECT_TRUE(list["rows"][0]["done"].is_null());

  Coordinator::JobView view;
  view.row = row;
  EXPECT_EQ(nlohmann::json::parse(*ViewJson(view, "s-7", 5)).count("job"), 0u);
  view.status.emplace().set_job_id("a-1");
  const nlohmann::json whole = nlohmann::json::parse(*ViewJson(view, "s-7", 5));
  EXPECT_EQ(whole["job"]["job_id"], "a-1");
  EXPECT_EQ(whole["round"], "");
}

// Each series has columns of one length. Numbers are those of the points, to the last digit.
TEST(DashboardJsonTest, HistoryAsColumns) {
  v1::HistoryPoint first = Point(0, 5), second = Point(0, 6), center = Point(-1, 7);
  first.set_loss(0.1);
  first.set_exchange_ms(1.0 / 3);
  first.set_center_distance(0.25);
  first.set_staleness(1.5);
  first.set_collectives_ms(7);
  second.set_loss(std::numeric_limits<double>::infinity());
  center.set_accuracy(0.875);
  const nlohmann::json series = nlohmann::json::parse(HistoryJson({first, second, center}))["series"];
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0]["group"], 0);
  EXPECT_EQ(series[0]["unix_ms"], nlohmann::json({5, 6}));
  EXPECT_EQ(series[0]["loss"], nlohmann::json({0.1, nullptr}));
  EXPECT_EQ(series[0]["exchange_ms"], nlohmann::json({1.0 / 3, nullptr}));
  EXPECT_EQ(series[0]["center_distance"], nlohmann::json({0.25, nullptr}));
  EXPECT_EQ(series[0]["staleness"], nlohmann::json({1.5, nullptr}));
  EXPECT_EQ(series[0]["computing_ms"], nlohmann::json({0, nullptr}));
  EXPECT_EQ(series[0]["collectives_ms"], nlohmann::json({7, nullptr}));
  EXPECT_EQ(series[1].count("exchanging_ms"), 0u);
  EXPECT_EQ(series[1].count("group"), 0u);
  EXPECT_EQ(series[1]["accuracy"], nlohmann::json({0.875}));
  EXPECT_TRUE(nlohmann::json::parse(HistoryJson({}))["series"].empty());
}

// A history that is short enough stays as it is. A long one loses points evenly, and no series its last one.
TEST(DashboardJsonTest, ThinsLongHistories) {
  std::vector<v1::HistoryPoint> points;
  for (int group : {0, 1, -1}) {
    const int count = group == -1 ? 7 : 1000;
    for (int i = 1; i <= count; ++i) points.push_back(Point(group, i));
  }
  EXPECT_EQ(ThinHistory(points, 2007).size(), 2007u);
  for (const size_t most : {1000, 100, 10, 1}) {
    const std::vector<v1::HistoryPoint> thin = ThinHistory(points, most);
    EXPECT_LE(thin.size(), most + 3);
    std::map<int64_t, int64_t> last;
    for (const v1::HistoryPoint& point : thin) last[point.has_group() ? int64_t{point.group()} : -1] = point.unix_ms();
    EXPECT_EQ(last, (std::map<int64_t, int64_t>{{0, 1000}, {1, 1000}, {-1, 7}})) << most;
  }
  EXPECT_TRUE(ThinHistory({}, 10).empty());
}

TEST(DashboardJsonTest, LogsMayHaveAnyBytes) {
  const nlohmann::json json = nlohmann::json::parse(LogJson("a\xff<\n", 4));
  EXPECT_EQ(json["text"], "a\xef\xbf\xbd<\n");
  EXPECT_EQ(json["next_offset"], 4);
  EXPECT_EQ(nlohmann::json::parse(ErrorJson(absl::NotFoundError("no \"job\"")))["error"], "no \"job\"");
}

}  // namespace
}  // namespace hooke
