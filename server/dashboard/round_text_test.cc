// Shows who waits for whom, from the groups' reports.

#include "server/dashboard/round_text.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

v1::JobStatus Job(v1::AveragingSpec::Rule rule) {
  v1::JobStatus job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_spec()->mutable_averaging()->set_rule(rule);
  return job;
}

v1::GroupStatus& AddGroup(v1::JobStatus& job, v1::RankProgress::Phase phase, double seconds, uint64_t exchanges) {
  v1::GroupStatus& group = *job.add_groups();
  group.set_group(static_cast<uint32_t>(job.groups_size() - 1));
  group.set_task(v1::GroupStart::TRAIN);
  group.set_state(v1::GROUP_STATE_RUNNING);
  group.mutable_progress()->set_phase(phase);
  group.mutable_progress()->set_phase_seconds(seconds);
  group.mutable_progress()->set_exchanges(exchanges);
  return group;
}

TEST(RoundTextTest, NamesWhoWaitsAndForWhom) {
  v1::JobStatus job = Job(v1::AveragingSpec::AVERAGE);
  AddGroup(job, v1::RankProgress::EXCHANGE, 3.7, 21);
  AddGroup(job, v1::RankProgress::COMPUTE, 9, 20);
  AddGroup(job, v1::RankProgress::EXCHANGE, 0.2, 20);
  EXPECT_EQ(RoundText(job), "about 21 rounds; group 0 has waited 3 s for groups 1 and 2");
  AddGroup(job, v1::RankProgress::EXCHANGE, 1.5, 21);
  EXPECT_EQ(RoundText(job), "about 21 rounds; groups 0 and 3 have waited 3 s for groups 1 and 2");
}

TEST(RoundTextTest, NobodyWaitsOrAllDo) {
  v1::JobStatus job = Job(v1::AveragingSpec::SYNC);
  EXPECT_EQ(RoundText(job), "") << "no report yet";
  AddGroup(job, v1::RankProgress::COMPUTE, 9, 20);
  EXPECT_EQ(RoundText(job), "about 20 rounds; no group waits for another");
  job = Job(v1::AveragingSpec::SYNC);
  AddGroup(job, v1::RankProgress::EXCHANGE, 2, 20);
  EXPECT_EQ(RoundText(job), "about 20 rounds; group 0 has waited 2 s for a server");
  job = Job(v1::AveragingSpec::SSP);
  AddGroup(job, v1::RankProgress::EXCHANGE, 2, 20);
  AddGroup(job, v1::RankProgress::COLLECTIVE, 0, 10).set_state(v1::GROUP_STATE_WAITING);
  AddGroup(job, v1::RankProgress::COLLECTIVE, 0, 10);
  EXPECT_EQ(RoundText(job), "group 0 has waited 2 s for group 2");
}

TEST(RoundTextTest, ManyGroupsAreCounted) {
  v1::JobStatus job = Job(v1::AveragingSpec::DILOCO);
  for (int i = 0; i < 20; ++i) AddGroup(job, v1::RankProgress::EXCHANGE, 2, 5);
  AddGroup(job, v1::RankProgress::COMPUTE, 0, 4);
  EXPECT_EQ(RoundText(job), "about 5 rounds; groups 0, 1, 2, 3, 4, 5, 6 and 13 more have waited 2 s for group 20");
}

// All groups that run may wait for one that starts again.
TEST(RoundTextTest, GroupsThatAreAway) {
  v1::JobStatus job = Job(v1::AveragingSpec::AVERAGE);
  AddGroup(job, v1::RankProgress::EXCHANGE, 5, 20);
  AddGroup(job, v1::RankProgress::COMPUTE, 0, 20).set_state(v1::GROUP_STATE_STARTING);
  AddGroup(job, v1::RankProgress::COMPUTE, 0, 20).set_state(v1::GROUP_STATE_FINISHED);
  EXPECT_EQ(RoundText(job), "about 20 rounds; group 0 has waited 5 s for group 1, which does not run now, or a server");
}

// Under elastic nobody waits for anybody. A job that has ended waits for nothing.
TEST(RoundTextTest, OtherJobsHaveNone) {
  v1::JobStatus elastic = Job(v1::AveragingSpec::ELASTIC);
  AddGroup(elastic, v1::RankProgress::EXCHANGE, 3, 21);
  EXPECT_EQ(RoundText(elastic), "");
  v1::JobStatus ended = Job(v1::AveragingSpec::AVERAGE);
  AddGroup(ended, v1::RankProgress::EXCHANGE, 3, 21);
  ended.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(RoundText(ended), "");
}

}  // namespace
}  // namespace hooke
