#include "worker/metrics/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string TextOf(const NodeFigures& figures) {
  MetricFamilies families;
  AddWorkerMetrics(figures, families);
  return families.Text();
}

// The metrics of a connected worker: slots, cache, and the times since it last heard from and wrote to the coordinator.
TEST(WorkerMetricsTest, ShowsTheNode) {
  NodeFigures figures;
  figures.version = "1.2.3";
  figures.slots = 4;
  figures.slots_used = 3;
  figures.groups = 2;
  figures.cache_bytes = 1000;
  figures.now = absl::UnixEpoch() + absl::Seconds(10);
  figures.session = {true, 2, figures.now - absl::Seconds(0.5), figures.now - absl::Seconds(1)};
  const std::string text = TextOf(figures);
  for (const char* sample : {"hooke_build_info{program=\"hooke-worker\",version=\"1.2.3\"} 1", "hooke_node_slots 4",
                             "hooke_node_slots_used 3", "hooke_node_groups 2", "hooke_node_file_cache_bytes 1000",
                             "hooke_node_connected 1", "hooke_node_welcomes_total 2",
                             "hooke_node_coordinator_unheard_seconds 0.5", "hooke_node_heartbeat_age_seconds 1"}) {
    EXPECT_THAT(text, HasSubstr(std::string(sample) + "\n"));
  }
}

// A worker that has never reached its coordinator does not say how long ago that was.
TEST(WorkerMetricsTest, LeavesOutWhatNeverWas) {
  const std::string text = TextOf({});
  EXPECT_THAT(text, HasSubstr("hooke_node_connected 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("unheard")));
  EXPECT_THAT(text, Not(HasSubstr("heartbeat")));
  EXPECT_THAT(text, Not(HasSubstr("hooke_state_folder")));
}

}  // namespace
}  // namespace hooke
