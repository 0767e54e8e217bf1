#include "server/cluster/site_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class SiteTableTest : public testing::Test {
 protected:
  // A job with kinds of groups at the sites `hpc` (2 ranks a group) and `cloud` (1 rank a group).
  SiteTableTest() {
    job_.record.job_id = "job-1";
    const auto add = [this](const std::string& site, uint32_t ranks) {
      v1::GroupKind& kind = *job_.record.spec.mutable_groups()->add_kinds();
      kind.set_site(site);
      kind.set_ranks(ranks);
      kind.set_count(1);
    };
    add("hpc", 2);
    add("cloud", 1);
  }

  std::string EvaluatesAt() { return EvaluationSite(job_, table_, workers_, now_); }

  SiteTable table_;
  WorkerTable workers_{LivenessOptions()};
  known::Job job_;
  Instant now_{absl::FromUnixSeconds(1000000000), absl::Seconds(1000)};
};

// One process speaks for a site. Another one may after the first was silent for 90 s.
TEST_F(SiteTableTest, HasOneAgent) {
  EXPECT_TRUE(*table_.Hear("hpc", "process1", now_));
  EXPECT_FALSE(*table_.Hear("hpc", "process1", now_));
  now_ += absl::Seconds(89);
  const absl::Status refused = table_.Hear("hpc", "process2", now_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("was heard 1m29s ago"));
  EXPECT_TRUE(table_.IsAlive("hpc", now_));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(table_.IsAlive("hpc", now_));
  EXPECT_TRUE(*table_.Hear("hpc", "process2", now_));
}

TEST_F(SiteTableTest, TellsWhatAJobWaitsForThere) {
  EXPECT_EQ(table_.TextOf(job_.record, "hpc", now_), "");
  (*job_.record.spec.mutable_slurm())["hpc"];
  EXPECT_THAT(table_.TextOf(job_.record, "hpc", now_), HasSubstr("has come yet"));
  ASSERT_TRUE(table_.Hear("hpc", "process1", now_).ok());
  EXPECT_EQ(table_.TextOf(job_.record, "hpc", now_), "");
  EXPECT_THAT(table_.SetNotes("hpc", {{"job-1", "Priority"}}), ElementsAre(Pair("job-1", "Priority")));
  EXPECT_EQ(table_.TextOf(job_.record, "hpc", now_), "; Priority");
  EXPECT_THAT(table_.SetNotes("hpc", {{"job-1", "Priority"}, {"job-2", "Resources"}}),
              ElementsAre(Pair("job-2", "Resources")));
  now_ += absl::Minutes(3);
  EXPECT_THAT(table_.TextOf(job_.record, "hpc", now_), HasSubstr("was last heard 3m ago"));
}

// The evaluation goes where the smallest groups are, if anything can run there.
TEST_F(SiteTableTest, EvaluatesWhereSomethingCanRun) {
  EXPECT_EQ(EvaluatesAt(), "cloud");
  known::Worker& worker = workers_.Add("w", now_);
  worker.site = "hpc";
  workers_.BeginSession(worker);
  EXPECT_EQ(EvaluatesAt(), "hpc");
  worker.only_job = "job-2";
  EXPECT_EQ(EvaluatesAt(), "cloud");
  worker.only_job = "";
  ASSERT_TRUE(table_.Hear("cloud", "process1", now_).ok());
  EXPECT_EQ(EvaluatesAt(), "cloud");
}

}  // namespace
}  // namespace hooke
