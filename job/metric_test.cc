// Which metrics a program may report, and what the coordinator keeps of what a rank sends.
#include "job/metric.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

void Add(const std::string& name, double value, Metrics& metrics) {
  v1::Metric* metric = metrics.Add();
  metric->set_name(name);
  metric->set_value(value);
}

TEST(MetricTest, Names) {
  for (const std::string& name :
       {std::string("perplexity"), std::string("learning rate"), std::string("L2/‖g‖"), std::string(64, 'a')}) {
    EXPECT_TRUE(CheckMetricName(name).ok()) << name;
  }
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a\nb"), std::string("\x1b[31m"),
                                  std::string("\xff"), std::string(" ")}) {
    const absl::Status status = CheckMetricName(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("1 to 64 bytes"), absl::string_view::npos) << status;
  }
}

TEST(MetricTest, LastValueCounts) {
  Metrics metrics;
  EXPECT_TRUE(SetMetric("a", 1, metrics).ok());
  EXPECT_TRUE(SetMetric("b", 2, metrics).ok());
  EXPECT_TRUE(SetMetric("a", std::numeric_limits<double>::quiet_NaN(), metrics).ok());
  ASSERT_EQ(metrics.size(), 2);
  EXPECT_EQ(metrics[0].name(), "a");
  EXPECT_TRUE(std::isnan(metrics[0].value()));
  EXPECT_EQ(metrics[1].value(), 2);
}

TEST(MetricTest, ThereIsALimit) {
  Metrics metrics;
  for (int i = 0; i < kMetricsMax; ++i) EXPECT_TRUE(SetMetric(absl::StrCat("m", i), i, metrics).ok());
  const absl::Status status = SetMetric("one more", 1, metrics);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("same name at each step"), absl::string_view::npos) << status;
  EXPECT_TRUE(SetMetric("m3", 7, metrics).ok());
  EXPECT_EQ(metrics.size(), kMetricsMax);
}

TEST(MetricTest, OfAPeerOnlyTheAllowedOnesAreKept) {
  Metrics sent;
  Add("", 1, sent);
  Add("\x1b]0;x\x07", 1, sent);
  Add(std::string(1 << 20, 'a'), 1, sent);
  for (int i = 0; i < 10000; ++i) Add(absl::StrCat("m", i), i, sent);
  Add("m0", std::numeric_limits<double>::infinity(), sent);
  const Metrics kept = AllowedMetrics(sent);
  ASSERT_EQ(kept.size(), kMetricsMax);
  EXPECT_EQ(kept[0].name(), "m0");
  EXPECT_TRUE(std::isinf(kept[0].value()));
}

TEST(MetricTest, TextIsSafeForTerminals) {
  Metrics metrics;
  EXPECT_EQ(MetricsText(metrics), "");
  Add("perplexity", 21.5, metrics);
  Add("a\x1b[31m", 1e-5, metrics);
  Add("x", std::numeric_limits<double>::quiet_NaN(), metrics);
  EXPECT_EQ(MetricsText(metrics), "perplexity 21.5, a\\x1b[31m 1e-05, x nan");
}

}  // namespace
}  // namespace hooke
