#include "server/cluster/next_generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "job/job_defaults.h"
#include "server/cluster/example_job.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::JobSpec Kinds() {
  v1::JobSpec job = ExampleJob();
  job.mutable_groups()->Clear();
  for (const char* site : {"hpc", "cloud"}) {
    v1::GroupKind* kind = job.mutable_groups()->add_kinds();
    kind->set_site(site);
    kind->set_count(2);
    kind->set_ranks(kind == &job.groups().kinds(0) ? 4 : 1);
  }
  job.mutable_averaging()->clear_alpha();
  return FillDefaults(job);
}

JobRecord Record(const v1::JobSpec& spec) {
  JobRecord job;
  job.job_id = "fashion-1";
  job.spec = spec;
  for (uint32_t i = 0; i < spec.groups().count(); ++i) {
    GroupRecord& group = job.groups.emplace_back();
    group.group = i;
    group.incarnation = i + 1;
    group.exchanged_step = 100 + i;
  }
  return job;
}

TEST(NextGenerationTest, OneKindNeedsNoSite) {
  const v1::JobSpec job = FillDefaults(ExampleJob({2, 2}));
  EXPECT_EQ(ScaledGroups(job, "", 5)->count(), 5u);
  EXPECT_EQ(ScaledGroups(job, "", 5)->ranks(), 2u);
  const auto missing = ScaledGroups(job, "cloud", 5);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("any site"));
  EXPECT_EQ(ScaledGroups(job, "", 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ScaledGroups(job, "", 5000).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NextGenerationTest, AKindIsNamedByItsSite) {
  const v1::JobSpec job = Kinds();
  const auto groups = ScaledGroups(job, "hpc", 3);
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(groups->count(), 5u);
  EXPECT_EQ(groups->kinds(0).count(), 3u);
  EXPECT_EQ(ScaledGroups(job, "", 3).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ScaledGroups(job, "moon", 3).status().code(), absl::StatusCode::kNotFound);
}

// Under `none` the center does not have the work of the groups that would go.
TEST(NextGenerationTest, GroupsThatTrainAloneStay) {
  v1::JobSpec job = ExampleJob();
  job.mutable_averaging()->set_rule(v1::AveragingSpec::NONE);
  EXPECT_EQ(ScaledGroups(FillDefaults(job), "", 3).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(NextGenerationTest, AlphaFollowsTheGroupsUnlessItWasChosen) {
  v1::JobSpec job = ExampleJob({1, 2});
  job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  job.mutable_averaging()->clear_alpha();
  job = FillDefaults(job);
  EXPECT_DOUBLE_EQ(job.averaging().alpha(), 0.5);
  v1::GroupsSpec groups = job.groups();
  groups.set_count(3);
  EXPECT_DOUBLE_EQ(WithGroups(job, groups).averaging().alpha(), 0.25);
  job.mutable_averaging()->set_alpha(0.4);
  EXPECT_DOUBLE_EQ(WithGroups(job, groups).averaging().alpha(), 0.4);
}

TEST(NextGenerationTest, BmufsMomentumFollowsTheGroupsUnlessItWasChosen) {
  v1::JobSpec job = ExampleJob({2, 2});
  job.mutable_averaging()->set_rule(v1::AveragingSpec::BMUF);
  job.mutable_averaging()->clear_momentum();
  job = FillDefaults(job);
  EXPECT_DOUBLE_EQ(job.averaging().momentum(), 0.5);
  v1::GroupsSpec groups = job.groups();
  groups.set_count(4);
  EXPECT_DOUBLE_EQ(WithGroups(job, groups).averaging().momentum(), 0.75);
  job.mutable_averaging()->set_momentum(0.4);
  EXPECT_DOUBLE_EQ(WithGroups(job, groups).averaging().momentum(), 0.4);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::SLOWMO);
  job.mutable_averaging()->clear_momentum();
  job = FillDefaults(job);
  EXPECT_DOUBLE_EQ(WithGroups(job, groups).averaging().momentum(), job.averaging().momentum());
}

// 2 groups of 2 ranks train 32 samples each in a step, 10 steps an epoch: 1280 samples. 20 groups fill one step,
// not 21.
TEST(NextGenerationTest, AStepMustNotTakeMoreThanAnEpoch) {
  v1::JobSpec job = ExampleJob({2, 2});
  job.mutable_train()->set_batch_size(32);
  job.mutable_train()->set_epochs(4);
  job = FillDefaults(job);
  v1::RankProgress progress;
  progress.set_step(15);
  progress.set_epoch(1.5);
  progress.set_steps_total(40);
  EXPECT_TRUE(CheckDataSuffices(job, progress, *ScaledGroups(job, "", 20)).ok());
  const absl::Status status = CheckDataSuffices(job, progress, *ScaledGroups(job, "", 21));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("1344 samples, and an epoch has about 1280"));
  EXPECT_TRUE(CheckDataSuffices(job, {}, *ScaledGroups(job, "", 21)).ok()) << "nothing is known yet";
}

TEST(NextGenerationTest, GroupsGoOnFromTheFurthestStep) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  job.generations.wanted = job.spec.groups();
  job.generations.wanted->set_count(3);
  BeginGeneration(job, {});
  EXPECT_EQ(job.spec.groups().count(), 3u);
  ASSERT_EQ(job.groups.size(), 3u);
  EXPECT_EQ(job.generations.first_step, 101u);
  EXPECT_EQ(job.generations.first_incarnation, 3u);
  ASSERT_EQ(job.generations.earlier.size(), 1u);
  EXPECT_EQ(job.generations.earlier[0].groups(0).last_step(), 100u);
  EXPECT_EQ(job.generations.earlier[0].groups(1).ranks(), 2u);
  for (const GroupRecord& group : job.groups) {
    EXPECT_EQ(group.state, v1::GROUP_STATE_WAITING);
    EXPECT_EQ(group.incarnation, 2u) << "the next start is the generation's first";
    EXPECT_EQ(group.exchanged_step, 101u);
    EXPECT_EQ(group.is_new, group.group == 2);
  }
  // A group of the next generation that has exchanged nothing ends where it began.
  job.generations.wanted = job.spec.groups();
  job.generations.wanted->set_count(1);
  BeginGeneration(job, {});
  EXPECT_EQ(job.generations.earlier[1].groups(2).last_step(), 101u);
  EXPECT_EQ(job.generations.first_step, 101u);
  EXPECT_EQ(job.groups.size(), 1u);
}

// With one more group at hpc, the groups of cloud get other numbers, under which servers keep no states of theirs.
TEST(NextGenerationTest, GroupsWithOtherNumbersAreNew) {
  JobRecord job = Record(Kinds());
  job.generations.wanted = *ScaledGroups(job.spec, "hpc", 3);
  BeginGeneration(job, {});
  ASSERT_EQ(job.groups.size(), 5u);
  EXPECT_FALSE(job.groups[1].is_new);
  EXPECT_TRUE(job.groups[2].is_new);
  EXPECT_TRUE(job.groups[3].is_new);
  // The new group 2 never started, so the states under its number are still those of the group that had it before.
  job.groups[3].exchanged_step += 10;
  job.generations.wanted = *ScaledGroups(job.spec, "cloud", 4);
  BeginGeneration(job, {});
  EXPECT_FALSE(job.groups[1].is_new);
  EXPECT_TRUE(job.groups[2].is_new);
  EXPECT_FALSE(job.groups[3].is_new);
}

// Makes a server's answer about a group: its last start that exchanged there, and its last step there.
struct Said {
  uint32_t group;
  uint32_t incarnation;
  uint64_t step;
};

v1::ClosedGeneration Answer(const std::vector<Said>& groups) {
  v1::ClosedGeneration answer;
  for (const Said& said : groups) {
    v1::ClosedGroup* group = answer.add_groups();
    group->set_group(said.group);
    group->set_incarnation(said.incarnation);
    group->set_step(said.step);
  }
  return answer;
}

// Groups 0 and 1 have reported steps 100 and 101. Their last starts are 1 and 2.
TEST(NextGenerationTest, TheLowestStepOfTheServersCounts) {
  const JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  const auto steps = [&job](const std::vector<v1::ClosedGeneration>& answers) { return LastSteps(job, answers); };
  EXPECT_THAT(steps({}), ElementsAre(100, 101)) << "no server";
  EXPECT_THAT(steps({Answer({}), Answer({})}), ElementsAre(100, 101)) << "no server has a say";
  EXPECT_THAT(steps({Answer({{0, 1, 120}, {1, 2, 130}})}), ElementsAre(120, 130)) << "reports were late";
  EXPECT_THAT(steps({Answer({{0, 1, 120}, {1, 2, 130}}), Answer({{0, 1, 110}, {1, 1, 140}})}), ElementsAre(110, 130))
      << "killed in an exchange, or while it attached";
  EXPECT_THAT(steps({Answer({{0, 1, 90}, {1, 2, 90}}), Answer({})}), ElementsAre(90, 90))
      << "went back, to kept values or to a snapshot; a lost shard has no say";
  EXPECT_THAT(steps({Answer({{0, 1, 120}, {1, 0, 0}})}), ElementsAre(120, 0)) << "group 1 never exchanged";
  EXPECT_THAT(steps({Answer({{0, 1, 120}})}), ElementsAre(120, 0)) << "group 1 is not known there";
}

// The job is in its second generation, which began with start 3 at step 50. Start 2 was in the first one.
TEST(NextGenerationTest, OnlyExchangesOfTheGenerationCount) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  job.generations.first_step = 50;
  job.generations.first_incarnation = 3;
  job.groups[0].incarnation = job.groups[1].incarnation = 3;
  EXPECT_THAT(LastSteps(job, {{Answer({{0, 3, 60}, {1, 3, 70}}), Answer({{0, 3, 60}, {1, 2, 55}})}}),
              ElementsAre(60, 50))
      << "a server went back to a snapshot of the first generation";
  job.groups[1].exchanged_step = 0;
  EXPECT_THAT(LastSteps(job, {}), ElementsAre(100, 50));
}

// A group that has finished was on the disks of all servers. It will not train again what a lost disk has lost.
TEST(NextGenerationTest, AFinishedGroupKeepsWhatItHasReported) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  job.groups[1].state = v1::GROUP_STATE_FINISHED;
  EXPECT_THAT(LastSteps(job, {{Answer({{0, 1, 8}, {1, 0, 0}})}}), ElementsAre(8, 101));
  EXPECT_THAT(LastSteps(job, {{Answer({{0, 1, 8}, {1, 2, 120}})}}), ElementsAre(8, 120)) << "its last report was lost";
}

// The answers decide what is handed out again, where the next generation begins, and who has a state of its own.
TEST(NextGenerationTest, TheNextGenerationBeginsByTheAnswers) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  job.groups[1].is_new = true;
  job.generations.wanted = job.spec.groups();
  job.generations.wanted->set_count(2);
  BeginGeneration(job, {{Answer({{0, 1, 120}, {1, 0, 0}})}});
  EXPECT_EQ(job.generations.earlier[0].groups(0).last_step(), 120u);
  EXPECT_EQ(job.generations.earlier[0].groups(1).last_step(), 0u);
  EXPECT_EQ(job.generations.first_step, 120u);
  EXPECT_FALSE(job.groups[0].is_new);
  EXPECT_TRUE(job.groups[1].is_new) << "what it has reported is in no center";
}

TEST(NextGenerationTest, AGenerationEndsWhenAllGroupsAreGone) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  job.state = v1::JOB_STATE_RUNNING;
  EXPECT_FALSE(GenerationIsEnding(job)) << "nobody wants another number";
  job.generations.wanted = job.spec.groups();
  EXPECT_TRUE(GenerationIsEnding(job));
  EXPECT_EQ(NextFirstIncarnation(job), 3u);
  job.groups[1].state = v1::GROUP_STATE_FINISHED;
  EXPECT_TRUE(GenerationIsEnding(job));
  job.groups[0].state = v1::GROUP_STATE_RUNNING;
  EXPECT_FALSE(GenerationIsEnding(job));
  job.groups[0].state = v1::GROUP_STATE_WAITING;
  job.state = v1::JOB_STATE_CANCELLED;
  EXPECT_FALSE(GenerationIsEnding(job));
}

TEST(NextGenerationTest, AJobThatNeverStartedHasNoEarlierGeneration) {
  JobRecord job = Record(FillDefaults(ExampleJob({2, 2})));
  for (GroupRecord& group : job.groups) group.incarnation = 0;
  job.generations.wanted = job.spec.groups();
  job.generations.wanted->set_count(1);
  EXPECT_EQ(NextFirstIncarnation(job), 1u);
  BeginGeneration(job, {});
  EXPECT_TRUE(job.generations.earlier.empty());
  EXPECT_EQ(job.generations.first_incarnation, 0u);
  EXPECT_FALSE(job.groups[0].is_new);
}

}  // namespace
}  // namespace hooke
