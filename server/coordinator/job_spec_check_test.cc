#include "server/coordinator/job_spec_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "server/coordinator/example_job.h"

namespace hooke {
namespace {

struct Case {
  const char* name;
  std::function<void(v1::JobSpec&)> change;
  const char* message;  // Empty: accepted.
};

const Case kCases[] = {
    {"example", [](v1::JobSpec&) {}, ""},
    {"name", [](v1::JobSpec& j) { j.set_name("Fashion"); },
     "name is \"Fashion\", allowed is 1 to 63 characters of [a-z0-9-], starting with a letter"},
    {"no name", [](v1::JobSpec& j) { j.set_name(""); },
     "name is \"\", allowed is 1 to 63 characters of [a-z0-9-], starting with a letter"},
    {"path in name", [](v1::JobSpec& j) { j.set_name("a/../b"); },
     "name is \"a/../b\", allowed is 1 to 63 characters of [a-z0-9-], starting with a letter"},
    {"model", [](v1::JobSpec& j) { j.mutable_model()->set_name("gpt"); },
     "model is \"gpt\", allowed is mlp, lenet or resnet20"},
    {"format", [](v1::JobSpec& j) { j.mutable_data()->clear_format(); }, "data.format is number 0, allowed is idx"},
    {"path", [](v1::JobSpec& j) { j.mutable_data()->set_train("train"); },
     "data.train is \"train\", allowed is an absolute path of at most 4096 bytes"},
    {"epochs", [](v1::JobSpec& j) { j.mutable_train()->set_epochs(0); }, "train.epochs is 0, allowed is 1 to 100000"},
    {"batch", [](v1::JobSpec& j) { j.mutable_train()->set_batch_size(65537); },
     "train.batch_size is 65537, allowed is 1 to 65536"},
    {"rate", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(0); },
     "train.optimizer.learning_rate is 0, allowed is more than 0"},
    {"rate nan", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(std::nan("")); },
     "train.optimizer.learning_rate is nan, allowed is more than 0"},
    {"rate inf", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(INFINITY); },
     "train.optimizer.learning_rate is inf, allowed is more than 0"},
    {"momentum", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_momentum(1); },
     "train.optimizer.momentum is 1, allowed is 0 to less than 1"},
    {"nesterov",
     [](v1::JobSpec& j) {
       j.mutable_train()->mutable_optimizer()->set_momentum(0);
       j.mutable_train()->mutable_optimizer()->set_nesterov(true);
     },
     "train.optimizer.nesterov is true, allowed is only with momentum more than 0"},
    {"optimizer", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->clear_name(); },
     "train.optimizer.name is number 0, allowed is sgd, adam or adamw"},
    {"epsilon",
     [](v1::JobSpec& j) {
       v1::OptimizerSpec* adam = j.mutable_train()->mutable_optimizer();
       adam->set_name(v1::OptimizerSpec::ADAM);
       adam->set_beta1(0.9);
       adam->set_beta2(0.999);
     },
     "train.optimizer.epsilon is 0, allowed is more than 0"},
    {"warmup", [](v1::JobSpec& j) { j.mutable_train()->mutable_schedule()->set_warmup_epochs(4); },
     "train.schedule.warmup_epochs is 4, allowed is 0 to less than train.epochs (4)"},
    {"step", [](v1::JobSpec& j) { j.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::STEP); },
     "train.schedule.step_epochs is 0, allowed is more than 0"},
    {"cosine",
     [](v1::JobSpec& j) {
       j.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::COSINE);
       j.mutable_train()->mutable_schedule()->set_final_fraction(-0.1);
     },
     "train.schedule.final_fraction is -0.1, allowed is 0 to 1"},
    {"groups", [](v1::JobSpec& j) { j.mutable_groups()->set_count(0); }, "groups.count is 0, allowed is 1 to 1024"},
    {"ranks", [](v1::JobSpec& j) { j.mutable_groups()->set_ranks(1025); },
     "groups.ranks is 1025, allowed is 1 to 1024"},
    {"rule", [](v1::JobSpec& j) { j.mutable_averaging()->clear_rule(); },
     "averaging.rule is number 0, allowed is elastic, none, sync, async, ssp, downpour, average, bmuf, slowmo or "
     "diloco"},
    {"interval", [](v1::JobSpec& j) { j.mutable_averaging()->set_interval(0); },
     "averaging.interval is 0, allowed is 1 to 4294967295"},
    {"alpha", [](v1::JobSpec& j) { j.mutable_averaging()->set_alpha(1); },
     "averaging.alpha is 1, allowed is more than 0, less than 1"},
    {"interval by time", [](v1::JobSpec& j) { j.mutable_averaging()->set_interval_seconds(-1); },
     "averaging.interval_seconds is -1, allowed is 0 or more"},
    {"delay",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval(3);
       j.mutable_averaging()->set_delay(3);
     },
     "averaging.delay is 3, allowed is less than averaging.interval / averaging.fragments (3)"},
    {"fragments",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval(12);
       j.mutable_averaging()->set_fragments(5);
     },
     "averaging.fragments is 5, allowed is a divisor of averaging.interval of at most 64, and 1 with "
     "averaging.interval_seconds and with rules that send gradients"},
    {"auto",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval_auto(true);
       j.mutable_averaging()->set_interval_seconds(1);
     },
     "averaging.interval is auto, allowed is a number with averaging.fragments and averaging.interval_seconds"},
    {"post-local", [](v1::JobSpec& j) { j.mutable_averaging()->set_post_local_epochs(1); },
     "averaging.post_local_epochs is 1, allowed is 0 but with average, where it is less than train.epochs (4)"},
    {"compression",
     [](v1::JobSpec& j) { j.mutable_averaging()->set_compression(static_cast<v1::AveragingSpec::Compression>(7)); },
     "averaging.compression is number 7, allowed is none, float16, bfloat16, int8, int4 or top_k"},
    {"top_k of whole parameters",
     [](v1::JobSpec& j) { j.mutable_averaging()->set_compression(v1::AveragingSpec::COMPRESSION_TOP_K); },
     "averaging.compression is top_k, allowed is another one with averaging.rule elastic and none"},
    {"top_k of nothing",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_averaging()->set_compression(v1::AveragingSpec::COMPRESSION_TOP_K);
     },
     "averaging.top_k is 0, allowed is more than 0, at most 1"},
    {"servers", [](v1::JobSpec& j) { j.mutable_averaging()->set_servers(65537); },
     "averaging.servers is 65537, allowed is 0 to 65536"},
    {"quorum",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
       j.mutable_averaging()->set_quorum(j.groups().count() + 1);
     },
     "averaging.quorum is 3, allowed is 1 to 2"},
    {"grace",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::AVERAGE);
       j.mutable_averaging()->set_quorum(1);
       j.mutable_averaging()->set_grace_seconds(11);
     },
     "averaging.grace_seconds is 11, allowed is 0 to 10"},
    {"outer rate",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::DILOCO);
       j.mutable_averaging()->set_quorum(1);
     },
     "averaging.learning_rate is 0, allowed is more than 0"},
    {"outer nesterov",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::BMUF);
       j.mutable_averaging()->set_quorum(1);
       j.mutable_averaging()->set_learning_rate(1);
       j.mutable_averaging()->set_nesterov(true);
     },
     "averaging.momentum is 0, allowed is more than 0 with nesterov"},
    {"staleness bound", [](v1::JobSpec& j) { j.mutable_averaging()->set_rule(v1::AveragingSpec::SSP); },
     "averaging.staleness_bound is 0, allowed is 1 to 4294967295"},
    {"staleness power",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_averaging()->set_staleness_power(-1);
     },
     "averaging.staleness_power is -1, allowed is 0 to 4"},
    {"gradients on the root alone",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::DOWNPOUR);
       j.mutable_collectives()->set_aggregation(v1::CollectivesSpec::ROOTED);
     },
     "collectives.aggregation is rooted, allowed is allreduce with an averaging.rule that sends gradients"},
    {"gradients in parts",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_collectives()->set_aggregation(v1::CollectivesSpec::SHARDED);
     },
     "collectives.aggregation is sharded, allowed is allreduce with an averaging.rule that sends gradients"},
    {"none needs no alpha",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::NONE);
       j.mutable_averaging()->clear_alpha();
     },
     ""},
    {"aggregation", [](v1::JobSpec& j) { j.mutable_collectives()->clear_aggregation(); },
     "collectives.aggregation is number 0, allowed is allreduce, rooted or sharded"},
    {"order", [](v1::JobSpec& j) { j.mutable_collectives()->set_order(static_cast<v1::CollectivesSpec::Order>(9)); },
     "collectives.order is number 9, allowed is funneled, concurrent or chained"},
    {"bucket", [](v1::JobSpec& j) { j.mutable_collectives()->set_bucket_mib(0); },
     "collectives.bucket_mib is 0, allowed is more than 0, at most 4096"},
    {"tuning", [](v1::JobSpec& j) { j.mutable_collectives()->set_tuning(std::string(65537, ' ')); },
     "collectives.tuning is 65537 bytes, allowed is at most 65536 bytes"},
    {"empty", [](v1::JobSpec& j) { j.Clear(); },
     "name is \"\", allowed is 1 to 63 characters of [a-z0-9-], starting with a letter"},
};

// Every field out of range is refused with its key, its value and what is allowed.
TEST(JobSpecCheckTest, SaysWhatIsOutOfRange) {
  for (const Case& c : kCases) {
    v1::JobSpec job = ExampleJob();
    c.change(job);
    const absl::Status status = CheckJobSpec(job);
    EXPECT_EQ(status.message(), c.message) << c.name;
    EXPECT_EQ(status.code(), c.message[0] == '\0' ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
        << c.name;
  }
}

// More ranks than any worker has slots: refused, naming the largest worker and site.
TEST(JobSpecCheckTest, RefusesMoreRanksThanAnyWorkerHasSlots) {
  const absl::Status status =
      CheckRanksFit(ExampleJob({1, 8}), {{"w1", "hpc", 2}, {"w2", "hpc", 2}, {"w3", "cloud", 3}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      status.message(),
      "groups.ranks is 8, but all ranks of a group run on one worker, and the largest worker, w3 at site cloud, has 3 "
      "slots (the largest site, hpc, has 4): lower groups.ranks, or start a worker with --slots=8");
}

// A job that fits, or whose site no worker has joined yet, is taken: it may wait.
TEST(JobSpecCheckTest, TakesWhatMayStillFit) {
  EXPECT_TRUE(CheckRanksFit(ExampleJob({1, 2}), {{"w1", "hpc", 2}}).ok());
  EXPECT_TRUE(CheckRanksFit(ExampleJob({1, 8}), {}).ok());
  v1::JobSpec elsewhere = ExampleJob({1, 8});
  elsewhere.mutable_groups()->set_site("cloud");
  EXPECT_TRUE(CheckRanksFit(elsewhere, {{"w1", "hpc", 2}}).ok());
  elsewhere.mutable_groups()->set_site("hpc");
  EXPECT_FALSE(CheckRanksFit(elsewhere, {{"w1", "hpc", 2}, {"w2", "cloud", 8}}).ok());
}

}  // namespace
}  // namespace hooke
