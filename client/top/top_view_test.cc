// Tests the picture of `hooke top`, and the rates in it.
#include "client/top/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/fake_servers.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

v1::NodeStatus Node(v1::NodeStatus::Kind kind, const std::string& name) {
  v1::NodeStatus node;
  node.set_kind(kind);
  node.set_name(name);
  node.set_alive(true);
  node.set_slots(kind == v1::NodeStatus::WORKER ? 4 : 0);
  return node;
}

v1::JobStatus Job(const std::string& id, uint64_t step, uint64_t exchanges) {
  v1::JobStatus job = RunningJob(id);
  job.add_servers("10.0.0.1:7411");
  for (v1::GroupStatus& group : *job.mutable_groups()) {
    group.mutable_progress()->set_step(step);
    group.mutable_progress()->set_exchanges(exchanges);
    group.mutable_progress()->set_samples_per_s(1000);
  }
  return job;
}

TopState State() {
  TopState state;
  state.address = "10.0.0.1:7411";
  state.look.at = kNow;
  *state.look.nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "10.0.0.1:7411");
  *state.look.nodes.add_nodes() = Node(v1::NodeStatus::WORKER, "worker-1");
  *state.look.nodes.add_nodes() = Node(v1::NodeStatus::WORKER, "worker-2");
  *state.look.jobs.add_jobs() = SucceededJob("old-1");
  *state.look.jobs.add_jobs() = Job("fashion-2", 500, 40);
  state.before = state.look;
  state.before->at = kNow - absl::Seconds(5);
  *state.before->jobs.mutable_jobs(1) = Job("fashion-2", 400, 10);
  return state;
}

TopViewOptions InUtc(int width, int height) {
  TopViewOptions options;
  options.width = width;
  options.height = height;
  options.zone = absl::UTCTimeZone();
  return options;
}

std::string LineWith(const std::vector<std::string>& lines, const std::string& start) {
  for (const std::string& line : lines) {
    if (absl::StrCat(line, " ").rfind(start, 0) == 0) return line;
  }
  return "";
}

// All tables are there, jobs that run come first, and rates are differences by time.
TEST(TopViewTest, Everything) {
  const std::vector<std::string> lines = RenderTop(State(), kNow, InUtc(0, 0));
  const std::string all = absl::StrJoin(lines, "\n");
  EXPECT_EQ(lines[0],
            "08:00:00  10.0.0.1:7411  jobs: 1 running, 0 waiting, 1 ended; workers: 2, 0/8 slots in use; servers: 1");
  EXPECT_LT(all.find("fashion-2  running"), all.find("old-1      succeeded"));
  EXPECT_THAT(LineWith(lines, "fashion-2 0 "), AllOf(HasSubstr("500/1123  20 "), HasSubstr("1000       6.0")));
  EXPECT_THAT(LineWith(lines, "fashion-2  "), HasSubstr("2/2     2000       12 "));
  EXPECT_THAT(LineWith(lines, "10.0.0.1:7411 "), HasSubstr("alive  0.00   12.0 "));
  EXPECT_THAT(LineWith(lines, "worker-1 "), HasSubstr("0/4    1000"));
}

// Without an earlier look, and after a group was started again, no rate is known.
TEST(TopViewTest, NoRates) {
  TopState state = State();
  state.before->jobs.mutable_jobs(1)->mutable_groups(0)->set_incarnation(7);
  state.before->jobs.mutable_jobs(1)->mutable_groups(1)->clear_progress();
  EXPECT_TRUE(RatesOf(state.before, state.look).groups.empty());
  state.before.reset();
  EXPECT_TRUE(RatesOf(state.before, state.look).groups.empty());
  EXPECT_THAT(LineWith(RenderTop(state, kNow, InUtc(0, 0)), "fashion-2 0 "), HasSubstr("500/1123  -  "));
}

// If a group runs on two workers, each worker gets a share of its samples in proportion to the ranks that it runs.
TEST(TopViewTest, SamplesOfParts) {
  ClusterLook look = State().look;
  v1::GroupStatus* group = look.jobs.mutable_jobs(1)->mutable_groups(0);
  for (const uint32_t ranks : {1, 3}) {
    v1::GroupPart* part = group->add_parts();
    part->set_worker(absl::StrCat("part-", ranks));
    part->set_ranks(ranks);
  }
  const ClusterRates rates = RatesOf(std::nullopt, look);
  EXPECT_DOUBLE_EQ(rates.worker_samples.at("part-1"), 250);
  EXPECT_DOUBLE_EQ(rates.worker_samples.at("part-3"), 750);
}

// No line is wider than the terminal, and the picture leaves one line free, at each size. Hostile names are printable.
TEST(TopViewTest, FitsEachSize) {
  TopState state = State();
  for (int i = 0; i < 60; ++i) {
    *state.look.nodes.add_nodes() = Node(v1::NodeStatus::WORKER, absl::StrCat("\x1b[2J\u4e16\u754c-", i));
    *state.look.jobs.add_jobs() = Job(absl::StrCat("job-", i), 1, 1);
  }
  state.look.nodes.mutable_nodes(0)->set_problem(std::string(500, 'x'));
  for (const bool away : {false, true}) {
    if (away) state.away_since = kNow - absl::Seconds(9);
    for (const int width : {1, 2, 20, 80, 300}) {
      for (const int height : {1, 4, 10, 24, 50, 400}) {
        const std::vector<std::string> lines = RenderTop(state, kNow, InUtc(width, height));
        EXPECT_LE(static_cast<int>(lines.size()), std::max(3, height - 1)) << width << "x" << height;
        for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), width) << width << "x" << height;
        EXPECT_THAT(lines, Each(Not(HasSubstr("\x1b"))));
      }
    }
  }
  const std::vector<std::string> lines = RenderTop(state, kNow, InUtc(80, 24));
  EXPECT_THAT(lines[0], StartsWith("coordinator away since 07:59:51; trying again"));
  EXPECT_EQ(lines.size(), 23u);
  for (const char* table : {"JOB ", "GROUP ", "WORKER ", "SERVER "}) EXPECT_NE(LineWith(lines, table), "") << table;
  EXPECT_THAT(absl::StrJoin(lines, "\n"), HasSubstr("\nand 59 more\n"));
}

TEST(TopViewTest, ShareRows) {
  EXPECT_THAT(ShareRows({3, 2, 0, 1}, 100), ElementsAre(3, 2, 0, 1));
  EXPECT_THAT(ShareRows({100, 100, 1, 1}, 18), ElementsAre(4, 4, 1, 1));
  EXPECT_THAT(ShareRows({100, 1, 0, 0}, 10), ElementsAre(5, 1, 0, 0));
  EXPECT_THAT(ShareRows({5, 5}, 5), ElementsAre(1, 0));
  EXPECT_THAT(ShareRows({5, 5}, 0), ElementsAre(0, 0));
  EXPECT_THAT(ShareRows({}, 10), ElementsAre());
}

TEST(TopViewTest, Json) {
  const nlohmann::ordered_json json = TopToJson(State());
  EXPECT_EQ(json["unix_ms"], 1'800'000'000'000);
  EXPECT_EQ(json["jobs"].size(), 2u);
  EXPECT_EQ(json["nodes"].size(), 3u);
  EXPECT_EQ(json["rates"][0].dump(), R"({"job_id":"fashion-2","group":0,"steps_per_s":20.0,"exchanges_per_s":6.0})");
}

}  // namespace
}  // namespace hooke
