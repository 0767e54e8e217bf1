#include "worker/exchange/shard_job.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/group_kinds.h"
#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

v1::JobSpec Job(v1::AveragingSpec::Rule rule, v1::ScheduleSpec::Name schedule, double warmup_epochs = 0) {
  v1::JobSpec job;
  job.mutable_averaging()->set_rule(rule);
  job.mutable_train()->set_epochs(10);
  job.mutable_train()->mutable_schedule()->set_name(schedule);
  job.mutable_train()->mutable_schedule()->set_warmup_epochs(warmup_epochs);
  return job;
}

// The servers learn a group's last step from the program's plan. If the plan has no length and the rate is constant, no
// step is the last one. If the rate depends on the epoch, the schedule is at least as long as the job file's epochs.
TEST(ShardJobTest, LengthComesFromThePlan) {
  const v1::JobSpec average =
      Job(v1::AveragingSpec::AVERAGE, v1::ScheduleSpec::COSINE);  // The center's rate is constant.
  const v1::JobSpec constant = Job(v1::AveragingSpec::SSP, v1::ScheduleSpec::CONSTANT);
  const v1::JobSpec warmup = Job(v1::AveragingSpec::SSP, v1::ScheduleSpec::CONSTANT, 2);
  const v1::JobSpec cosine = Job(v1::AveragingSpec::SYNC, v1::ScheduleSpec::COSINE);
  struct Case {
    const char* what;
    const v1::JobSpec& job;
    std::optional<uint64_t> steps_total;
    uint64_t per_epoch;
    uint64_t epochs_told;
    uint64_t per_epoch_told;
  };
  const Case cases[] = {
      {"a model of Hooke's", average, std::nullopt, 7, 10, 7},
      {"nothing known", average, 0, 0, 1, kMost},
      {"nothing known, gradients", constant, 0, 0, 1, kMost},
      {"endless epochs", average, 0, 7, 1, kMost},
      {"only steps", average, 33, 0, 1, 33},
      {"100 epochs", average, 700, 7, 100, 7},
      {"2 epochs", constant, 14, 7, 2, 7},
      {"not whole epochs", constant, 15, 7, 1, 15},
      {"more epochs than a message holds", constant, kMost, 1, std::numeric_limits<uint32_t>::max(), 1},
      {"cosine, longer than the job file says", cosine, 85, 7, 13, 7},
      {"cosine, shorter", cosine, 14, 7, 10, 7},
      {"cosine, not known", cosine, 0, 7, 10, 7},
      {"warm-up, longer", warmup, 700, 7, 100, 7},
      {"warm-up, not known", warmup, 0, 7, 10, 7},
  };
  for (const Case& c : cases) {
    const v1::JobSpecForShard shard = ShardJob(c.job, {c.per_epoch, 5, c.steps_total});
    EXPECT_EQ(shard.epochs(), c.epochs_told) << c.what;
    EXPECT_EQ(shard.steps_per_epoch(), c.per_epoch_told) << c.what;
  }
}

// If groups have different numbers of ranks, as many ranks of each exchange as the smallest has. In rounds each group
// counts by its samples.
TEST(ShardJobTest, GroupsThatAreNotAlike) {
  v1::JobSpec job = Job(v1::AveragingSpec::AVERAGE, v1::ScheduleSpec::CONSTANT);
  job.mutable_train()->set_batch_size(16);
  for (const uint32_t ranks : {4, 2}) {
    v1::GroupKind& kind = *job.mutable_groups()->add_kinds();
    kind.set_ranks(ranks);
    kind.set_count(ranks / 2);
  }
  FillKinds(job);
  const v1::JobSpecForShard average = ShardJob(job, {7, 5});
  EXPECT_EQ(average.groups(), 3u);
  EXPECT_EQ(average.ranks(), 4u);
  EXPECT_EQ(average.slices(), 2u);
  EXPECT_THAT(average.group_samples(), testing::ElementsAre(64, 64, 32));

  job.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
  EXPECT_EQ(ShardJob(job, {7, 5}).group_samples_size(), 0);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  EXPECT_EQ(ShardJob(job, {7, 5}).slices(), 2u);

  job.mutable_groups()->mutable_kinds(1)->set_ranks(4);
  FillKinds(job);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
  EXPECT_EQ(ShardJob(job, {7, 5}).slices(), 0u);
  EXPECT_EQ(ShardJob(job, {7, 5}).group_samples_size(), 0);
}

TEST(ShardJobTest, CountsEpochs) {
  EXPECT_TRUE(CountsEpochs(Job(v1::AveragingSpec::SYNC, v1::ScheduleSpec::COSINE)));
  EXPECT_TRUE(CountsEpochs(Job(v1::AveragingSpec::SLOWMO, v1::ScheduleSpec::STEP)));
  EXPECT_TRUE(CountsEpochs(Job(v1::AveragingSpec::SYNC, v1::ScheduleSpec::CONSTANT, 1)));
  EXPECT_FALSE(CountsEpochs(Job(v1::AveragingSpec::SYNC, v1::ScheduleSpec::CONSTANT)));
  EXPECT_FALSE(CountsEpochs(Job(v1::AveragingSpec::AVERAGE, v1::ScheduleSpec::COSINE, 1)));
  EXPECT_FALSE(CountsEpochs(Job(v1::AveragingSpec::ELASTIC, v1::ScheduleSpec::COSINE)));
}

}  // namespace
}  // namespace hooke
