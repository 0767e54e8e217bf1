#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "wire/metrics/families.h"
#include "wire/metrics/folder_space.h"
#include "wire/metrics/metrics_page.h"
#include "wire/metrics/process_figures.h"

namespace hooke {
namespace {

// The text has each family once, with its help and type, even if its samples were added between others.
TEST(MetricsTest, WritesFamilies) {
  constexpr std::array<double, 2> kBounds = {0.5, 1};
  MetricFamilies families;
  families.Gauge("a", "A gauge.", 0.5, {{"l", "x\"y\n"}});
  families.Counter("b_total", "A counter.", 1e15);
  families.Gauge("a", "A gauge.", -INFINITY, {{"l", "z"}});
  families.Histogram("c_seconds", "A histogram.", {kBounds, {1, 2, 3}, 9.5});
  EXPECT_EQ(families.Text(),
            "# HELP a A gauge.\n# TYPE a gauge\na{l=\"x\\\"y\\n\"} 0.5\na{l=\"z\"} -Inf\n"
            "# HELP b_total A counter.\n# TYPE b_total counter\nb_total 1000000000000000\n"
            "# HELP c_seconds A histogram.\n# TYPE c_seconds histogram\n"
            "c_seconds_count 6\nc_seconds_sum 9.5\nc_seconds_bucket{le=\"0.5\"} 1\nc_seconds_bucket{le=\"1\"} 3\n"
            "c_seconds_bucket{le=\"+Inf\"} 6\n");
}

// The figures of this process, read from the kernel, lie within plausible bounds.
TEST(MetricsTest, ReadsThisProcess) {
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_GT(figures.cpu_time, absl::ZeroDuration());
  EXPECT_GT(figures.resident_bytes, 1u << 20);
  EXPECT_GE(figures.open_files, 3u);
  EXPECT_GT(figures.open_files_max, figures.open_files);
  EXPECT_LT(figures.started, absl::Now() + absl::Milliseconds(20));
  EXPECT_GT(figures.started, absl::Now() - absl::Hours(1));
  const int more = dup(0);
  EXPECT_EQ(ReadProcessFigures().open_files, figures.open_files + 1);
  close(more);
}

// The disk of a folder answers soon. For a folder that does not exist there are never figures. Its FolderSpace ends at
// once, although it asks only once an hour.
TEST(MetricsTest, AsksTheDisk) {
  const FolderSpace space(testing::TempDir(), absl::Milliseconds(1));
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!space.last().has_value() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(space.last().has_value());
  EXPECT_GT(space.last()->size_bytes, space.last()->free_bytes);
  const FolderSpace none("/no/such/folder", absl::Hours(1));
  EXPECT_FALSE(none.last().has_value());
}

// A wrong address is refused as INVALID_ARGUMENT, so nothing listens there.
TEST(MetricsTest, ChecksTheAddress) {
  EXPECT_EQ(ServeMetrics("9090", {}, [](MetricFamilies&) {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
