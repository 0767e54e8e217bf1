#include "job/group_kinds.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/job_check.h"
#include "job/job_defaults.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::JobSpec Job() {
  v1::JobSpec job;
  job.set_name("mixed");
  job.mutable_model()->set_name("lenet");
  job.mutable_data()->set_train("/data/train");
  job.mutable_data()->set_test("/data/test");
  return job;
}

void AddKind(v1::JobSpec& job, uint32_t count, uint32_t ranks, const std::string& site, uint32_t batch_size = 0) {
  v1::GroupKind& kind = *job.mutable_groups()->add_kinds();
  kind.set_count(count);
  kind.set_ranks(ranks);
  kind.set_site(site);
  kind.set_batch_size(batch_size);
}

// One group of four ranks at hpc, and two of one rank at cloud with small batches.
v1::JobSpec MixedJob() {
  v1::JobSpec job = Job();
  AddKind(job, 1, 4, "hpc");
  AddKind(job, 2, 1, "cloud", 16);
  return FillDefaults(job);
}

TEST(GroupKindsTest, DefaultsFollowFromTheKinds) {
  v1::JobSpec job = Job();
  AddKind(job, 0, 4, "hpc");
  AddKind(job, 2, 0, "");
  job = FillDefaults(job);
  EXPECT_EQ(job.groups().count(), 3u);
  EXPECT_EQ(job.groups().ranks(), 4u);
  EXPECT_EQ(job.groups().kinds(0).count(), 1u);
  EXPECT_EQ(job.groups().kinds(0).batch_size(), 64u);
  EXPECT_EQ(job.groups().kinds(1).ranks(), 1u);
  EXPECT_DOUBLE_EQ(job.averaging().alpha(), 0.25);  // The default for three groups.
  EXPECT_THAT(CheckJob(job), IsEmpty());
  EXPECT_EQ(FillDefaults(job).SerializeAsString(), job.SerializeAsString());
}

// If only one of `min` and `max` is given, the other one is the number of groups. If neither is given, there is no
// limit.
TEST(GroupKindsTest, LimitsOfTheNumber) {
  v1::JobSpec job = Job();
  job.mutable_groups()->set_count(2);
  EXPECT_FALSE(HasLimits(KindsOf(FillDefaults(job)).front()));
  job.mutable_groups()->set_max(3);
  job = FillDefaults(job);
  EXPECT_EQ(KindsOf(job).front().min(), 2u);
  EXPECT_EQ(KindsOf(job).front().max(), 3u);
  EXPECT_THAT(CheckJob(job), IsEmpty());
  const auto problem = [](v1::JobSpec wrong) {
    const std::vector<JobProblem> problems = CheckJob(FillDefaults(std::move(wrong)));
    return problems.size() == 1 ? problems.front().key + ": " + problems.front().message : "";
  };
  v1::JobSpec wrong = job;
  wrong.mutable_groups()->set_min(3);
  EXPECT_THAT(problem(wrong), HasSubstr("groups.min: 3 is more than groups.count, which is 2"));
  wrong = job;
  wrong.mutable_groups()->set_max(1);
  EXPECT_THAT(problem(wrong), HasSubstr("groups.max: 1 is less than groups.count, which is 2"));
  wrong = job;
  wrong.mutable_groups()->set_ranks(8000);
  EXPECT_THAT(problem(wrong), HasSubstr("groups.ranks: 8000 times groups.max, which is 3, is more than 16384"));
  wrong = job;
  wrong.mutable_groups()->set_min(1);
  wrong.mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
  wrong.mutable_averaging()->set_quorum(2);
  EXPECT_THAT(problem(wrong), HasSubstr("averaging.quorum: 2 is more than groups.min, which is 1"));
  wrong = job;
  wrong.mutable_averaging()->set_rule(v1::AveragingSpec::NONE);
  EXPECT_THAT(CheckJob(FillDefaults(wrong)).front().message, HasSubstr("does not apply to averaging.rule none"));
  wrong = job;
  wrong.mutable_groups()->set_min(1);
  wrong.mutable_averaging()->set_rule(v1::AveragingSpec::BMUF);
  wrong.mutable_averaging()->set_nesterov(true);
  wrong.mutable_averaging()->clear_momentum();
  EXPECT_THAT(problem(wrong), HasSubstr("averaging.nesterov: needs averaging.momentum above 0; set it; the job may get "
                                        "as few as 1 group, by the keys min and max of groups"))
      << "the default momentum for one group is 0";
  wrong.mutable_averaging()->set_momentum(0.9);
  EXPECT_THAT(CheckJob(FillDefaults(wrong)), IsEmpty());
  v1::JobSpec mixed = MixedJob();
  mixed.mutable_groups()->mutable_kinds(1)->set_min(1);
  mixed.mutable_groups()->mutable_kinds(1)->set_max(1);
  EXPECT_THAT(problem(mixed), HasSubstr("kind 2: max: 1 is less than count, which is 2"));
  mixed.mutable_groups()->mutable_kinds(1)->set_max(1024);
  EXPECT_THAT(problem(mixed), HasSubstr("all kinds together may get 1025 groups; must be at most 1024"));
  mixed.mutable_groups()->mutable_kinds(1)->set_max(5);
  EXPECT_THAT(CheckJob(FillDefaults(mixed)), IsEmpty());
}

TEST(GroupKindsTest, KnowsEachGroup) {
  const v1::JobSpec job = MixedJob();
  EXPECT_EQ(KindOf(job, 0).ranks(), 4u);
  EXPECT_EQ(KindOf(job, 0).site(), "hpc");
  EXPECT_EQ(KindOf(job, 0).batch_size(), 64u);
  EXPECT_EQ(KindOf(job, 1).site(), "cloud");
  EXPECT_EQ(KindOf(job, 2).ranks(), 1u);
  EXPECT_EQ(KindOf(job, 2).batch_size(), 16u);
  EXPECT_EQ(KindOf(job, 3).site(), "cloud") << "that evaluates";
  EXPECT_EQ(RanksBefore(job, 0), 0u);
  EXPECT_EQ(RanksBefore(job, 1), 4u);
  EXPECT_EQ(RanksBefore(job, 2), 5u);
  EXPECT_EQ(AllRanksOf(job), 6u);
  EXPECT_EQ(FewestRanks(job), 1u);
  EXPECT_THAT(SamplesOfGroups(job), ElementsAre(256, 16, 16));
  EXPECT_EQ(GroupsText(job), "1 group x 4 ranks at hpc, 2 groups x 1 rank at cloud (batch 16)");
}

// A job whose groups are alike has one kind, made of the keys of the whole job.
TEST(GroupKindsTest, GroupsThatAreAlikeAreOneKind) {
  v1::JobSpec job = Job();
  job.mutable_groups()->set_count(3);
  job.mutable_groups()->set_ranks(2);
  job.mutable_groups()->set_site("hpc");
  job = FillDefaults(job);
  EXPECT_FALSE(HasKinds(job));
  EXPECT_EQ(KindsOf(job).size(), 1u);
  EXPECT_EQ(KindOf(job, 2).site(), "hpc");
  EXPECT_EQ(RanksBefore(job, 2), 4u);
  EXPECT_EQ(AllRanksOf(job), 6u);
  EXPECT_EQ(FewestRanks(job), 2u);
  EXPECT_THAT(SamplesOfGroups(job), ElementsAre(128, 128, 128));
  EXPECT_EQ(GroupsText(job), "3 groups x 2 ranks");
}

TEST(GroupKindsTest, RefusesWhatIsOutOfRange) {
  struct Case {
    std::function<void(v1::JobSpec&)> change;
    std::string key;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& j) { j.mutable_groups()->mutable_kinds(1)->set_ranks(16385); }, "groups.ranks",
       "16385 is out of range; must be an integer from 1 to 16384"},
      {[](auto& j) { j.mutable_groups()->mutable_kinds(0)->set_count(1025); }, "groups.count", "1027"},
      {[](auto& j) { j.mutable_groups()->mutable_kinds(0)->set_site("h pc"); }, "groups",
       "kind 1: site: \"h pc\" is not a site's name"},
      {[](auto& j) { j.mutable_groups()->mutable_kinds(0)->set_batch_size(65537); }, "groups",
       "kind 1: batch_size: 65537 is out of range"},
      {[](auto& j) { j.mutable_groups()->set_site("hpc"); }, "groups", "each kind has its own"},
      {[](auto& j) { j.mutable_groups()->mutable_kinds(0)->set_gpus_per_rank(1); }, "groups",
       "kind 1: gpus_per_rank: goes only with command"},
      {[](auto& j) {
         j.mutable_groups()->mutable_kinds(0)->set_ranks(16000);
         j.mutable_groups()->mutable_kinds(1)->set_ranks(193);
       },
       "groups", "all groups together have 16386 ranks; must be at most 16384"},
      {[](auto& j) {
         for (int i = 0; i < kKindsMax; ++i) AddKind(j, 1, 1, "");
       },
       "groups", "has 66 kinds of groups; must be at most 64"},
  };
  for (const Case& c : cases) {
    v1::JobSpec job = MixedJob();
    c.change(job);
    const std::vector<JobProblem> problems = CheckJob(FillDefaults(job));
    ASSERT_THAT(problems, ::testing::Not(IsEmpty())) << c.message;
    EXPECT_EQ(problems[0].key, c.key);
    EXPECT_THAT(problems[0].message, HasSubstr(c.message));
  }
}

// The limit of ranks counts the ranks of each kind. So a few large groups beside many small ones are allowed, although
// as many large groups would not be.
TEST(GroupKindsTest, CountsTheRanksThatThereAre) {
  v1::JobSpec job = Job();
  AddKind(job, 1, 8192, "hpc");
  AddKind(job, 1000, 1, "cloud");
  EXPECT_THAT(CheckJob(FillDefaults(job)), IsEmpty());
}

// A program has a batch size of its own. Its groups count by their ranks.
TEST(GroupKindsTest, AProgramHasItsOwnBatchSize) {
  v1::JobSpec job;
  job.set_name("own");
  job.mutable_command()->add_arguments("train");
  job.mutable_command()->set_directory("/work");
  AddKind(job, 1, 4, "hpc");
  AddKind(job, 1, 1, "cloud");
  job.mutable_groups()->mutable_kinds(0)->set_gpus_per_rank(2);
  v1::JobSpec own = FillDefaults(job);
  EXPECT_THAT(CheckJob(own), IsEmpty());
  EXPECT_EQ(KindOf(own, 0).gpus_per_rank(), 2u);
  EXPECT_EQ(KindOf(own, 1).gpus_per_rank(), 0u);
  EXPECT_THAT(SamplesOfGroups(own), ElementsAre(4, 1));
  EXPECT_EQ(GroupsText(own), "1 group x 4 ranks at hpc, 1 group x 1 rank at cloud");
  own.mutable_groups()->mutable_kinds(1)->set_batch_size(8);
  ASSERT_THAT(CheckJob(own), ::testing::SizeIs(1));
  EXPECT_THAT(CheckJob(own)[0].message, HasSubstr("kind 2: batch_size: does not go with command"));
}

}  // namespace
}  // namespace hooke
