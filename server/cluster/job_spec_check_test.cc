#include "server/cluster/job_spec_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "server/cluster/example_job.h"

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
     "name: \"Fashion\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"no name", [](v1::JobSpec& j) { j.set_name(""); },
     "name: \"\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"path in name", [](v1::JobSpec& j) { j.set_name("a/../b"); },
     "name: \"a/../b\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"model", [](v1::JobSpec& j) { j.mutable_model()->set_name("gpt"); },
     "model: \"gpt\" is not known; must be one of small-mlp, mlp, lenet, resnet20"},
    {"format", [](v1::JobSpec& j) { j.mutable_data()->clear_format(); },
     "data.format: \"number 0\" is not known; must be idx"},
    {"path that steers a terminal", [](v1::JobSpec& j) { j.mutable_data()->set_train("/\x1b[31mred"); },
     "data.train: \"/\\x1b[31mred\" is not a path; must be a path prefix of at most 4096 bytes, without control "
     "characters"},
    {"site", [](v1::JobSpec& j) { j.mutable_groups()->set_site("\xef\xbb\xbf"); },
     "groups.site: \"\\u{feff}\" is not a site's name; must be empty, or 1 to 63 characters of A-Z, a-z, 0-9, ., _ and "
     "-"},
    {"huge rate", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(1e300); },
     "train.optimizer.learning_rate: 1e+300 is out of range; must be a number from 1e-9 to 1000"},
    {"tiny decay", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_weight_decay(1e-40); },
     "train.optimizer.weight_decay: 1e-40 is too small: a number other than 0 is at least 1e-20; must be a number from "
     "0 "
     "to 10"},
    {"long delay", [](v1::JobSpec& j) { j.mutable_averaging()->set_delay(1000001); },
     "averaging.delay: 1000001 is out of range; must be an integer from 0 to 1000000"},
    {"fragments of gradients",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_averaging()->set_fragments(4);
     },
     "averaging.fragments: 4 does not apply to averaging.rule async; only to elastic, average, bmuf, slowmo "
     "and diloco"},
    {"path", [](v1::JobSpec& j) { j.mutable_data()->set_train("train"); },
     "data.train: \"train\" is not an absolute path"},
    {"epochs", [](v1::JobSpec& j) { j.mutable_train()->set_epochs(0); },
     "train.epochs: 0 is out of range; must be an integer from 1 to 100000"},
    {"batch", [](v1::JobSpec& j) { j.mutable_train()->set_batch_size(65537); },
     "train.batch_size: 65537 is out of range; must be an integer from 1 to 65536"},
    {"rate", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(0); },
     "train.optimizer.learning_rate: 0 is out of range; must be a number from 1e-9 to 1000"},
    {"rate nan", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(std::nan("")); },
     "train.optimizer.learning_rate: nan is out of range; must be a number from 1e-9 to 1000"},
    {"rate inf", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_learning_rate(INFINITY); },
     "train.optimizer.learning_rate: inf is out of range; must be a number from 1e-9 to 1000"},
    {"momentum", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->set_momentum(1); },
     "train.optimizer.momentum: 1 is out of range; must be a number from 0 to 0.999999"},
    {"nesterov",
     [](v1::JobSpec& j) {
       j.mutable_train()->mutable_optimizer()->set_momentum(0);
       j.mutable_train()->mutable_optimizer()->set_nesterov(true);
     },
     "train.optimizer.nesterov: needs train.optimizer.momentum above 0; set it"},
    {"optimizer", [](v1::JobSpec& j) { j.mutable_train()->mutable_optimizer()->clear_name(); },
     "train.optimizer.name: \"number 0\" is not known; must be one of sgd, adam, adamw"},
    {"epsilon",
     [](v1::JobSpec& j) {
       v1::OptimizerSpec* adam = j.mutable_train()->mutable_optimizer();
       adam->set_name(v1::OptimizerSpec::ADAM);
       adam->set_beta1(0.9);
       adam->set_beta2(0.999);
     },
     "train.optimizer.epsilon: 0 is out of range; must be a number from 1e-20 to 1"},
    {"warmup", [](v1::JobSpec& j) { j.mutable_train()->mutable_schedule()->set_warmup_epochs(4); },
     "train.schedule.warmup_epochs: 4 is not below train.epochs, which is 4; make it less, or train longer"},
    {"step", [](v1::JobSpec& j) { j.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::STEP); },
     "train.schedule.step_epochs: 0 is out of range; must be a number from 0.001 to 100000 (and 1 more)"},
    {"cosine",
     [](v1::JobSpec& j) {
       j.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::COSINE);
       j.mutable_train()->mutable_schedule()->set_final_fraction(-0.1);
     },
     "train.schedule.final_fraction: -0.1 is out of range; must be a number from 0 to 1"},
    {"groups", [](v1::JobSpec& j) { j.mutable_groups()->set_count(0); },
     "groups.count: 0 is out of range; must be an integer from 1 to 1024"},
    {"ranks", [](v1::JobSpec& j) { j.mutable_groups()->set_ranks(16385); },
     "groups.ranks: 16385 is out of range; must be an integer from 1 to 16384"},
    {"ranks of all groups",
     [](v1::JobSpec& j) {
       j.mutable_groups()->set_count(16);
       j.mutable_groups()->set_ranks(1025);
     },
     "groups.ranks: 1025 times groups.count, which is 16, is more than 16384; lower one of them"},
    {"rule", [](v1::JobSpec& j) { j.mutable_averaging()->clear_rule(); },
     "averaging.rule: \"number 0\" is not known; must be one of elastic, none, sync, async, ssp, downpour, average, "
     "bmuf, "
     "slowmo, diloco"},
    {"interval", [](v1::JobSpec& j) { j.mutable_averaging()->set_interval(0); },
     "averaging.interval: 0 is out of range; must be an integer from 1 to 1000000, or auto"},
    {"alpha", [](v1::JobSpec& j) { j.mutable_averaging()->set_alpha(1); },
     "averaging.alpha: 1 is out of range; must be a number from 1e-6 to 0.999999"},
    {"interval by time", [](v1::JobSpec& j) { j.mutable_averaging()->set_interval_seconds(-1); },
     "averaging.interval_seconds: -1 is out of range; must be a number from 0.001 to 86400"},
    {"long interval by time", [](v1::JobSpec& j) { j.mutable_averaging()->set_interval_seconds(1e300); },
     "averaging.interval_seconds: 1e+300 is out of range; must be a number from 0.001 to 86400"},
    {"delay",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval(3);
       j.mutable_averaging()->set_delay(3);
     },
     "averaging.delay: 3 is not below averaging.interval, which is 3; make it less, or the interval longer"},
    {"fragments",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval(12);
       j.mutable_averaging()->set_fragments(5);
     },
     "averaging.fragments: averaging.interval, which is 12, is not a multiple of 5; change one of them"},
    {"auto",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_interval_auto(true);
       j.mutable_averaging()->set_interval_seconds(1);
     },
     "averaging.interval: auto does not go with averaging.interval_seconds; give one of them"},
    {"post-local", [](v1::JobSpec& j) { j.mutable_averaging()->set_post_local_epochs(1); },
     "averaging.post_local_epochs: 1 does not apply to averaging.rule elastic; only to average"},
    {"compression",
     [](v1::JobSpec& j) { j.mutable_averaging()->set_compression(static_cast<v1::AveragingSpec::Compression>(7)); },
     "averaging.compression: \"number 7\" is not known; must be one of none, float16, bfloat16, int8, int4, top_k"},
    {"top_k of whole parameters",
     [](v1::JobSpec& j) { j.mutable_averaging()->set_compression(v1::AveragingSpec::COMPRESSION_TOP_K); },
     "averaging.top_k: 0 is out of range; must be a number from 1e-6 to 1 (and 1 more)"},
    {"top_k of nothing",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_averaging()->set_compression(v1::AveragingSpec::COMPRESSION_TOP_K);
     },
     "averaging.top_k: 0 is out of range; must be a number from 1e-6 to 1"},
    {"servers", [](v1::JobSpec& j) { j.mutable_averaging()->set_servers(65537); },
     "averaging.servers: 65537 is out of range; must be an integer from 0 to 65536"},
    {"quorum",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
       j.mutable_averaging()->set_quorum(j.groups().count() + 1);
     },
     "averaging.quorum: 3 is more than groups.count, which is 2; make it less, or have more groups"},
    {"grace",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::AVERAGE);
       j.mutable_averaging()->set_quorum(1);
       j.mutable_averaging()->set_grace_seconds(11);
     },
     "averaging.grace_seconds: 11 is out of range; must be a number from 0 to 10"},
    {"outer rate",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::DILOCO);
       j.mutable_averaging()->set_quorum(1);
     },
     "averaging.learning_rate: 0 is out of range; must be a number from 1e-6 to 100"},
    {"outer nesterov",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::BMUF);
       j.mutable_averaging()->set_quorum(1);
       j.mutable_averaging()->set_learning_rate(1);
       j.mutable_averaging()->set_nesterov(true);
     },
     "averaging.nesterov: needs averaging.momentum above 0; set it"},
    {"staleness bound", [](v1::JobSpec& j) { j.mutable_averaging()->set_rule(v1::AveragingSpec::SSP); },
     "averaging.staleness_bound: 0 is out of range; must be an integer from 1 to 4000000"},
    {"staleness power",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_averaging()->set_staleness_power(-1);
     },
     "averaging.staleness_power: -1 is out of range; must be a number from 0 to 4"},
    {"gradients on the root alone",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::DOWNPOUR);
       j.mutable_collectives()->set_aggregation(v1::CollectivesSpec::ROOTED);
     },
     "collectives.aggregation: rooted does not apply to averaging.rule downpour, which needs the gradients on every "
     "rank; use allreduce"},
    {"gradients in parts",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
       j.mutable_collectives()->set_aggregation(v1::CollectivesSpec::SHARDED);
     },
     "collectives.aggregation: sharded does not apply to averaging.rule async, which needs the gradients on every "
     "rank; use allreduce"},
    {"none needs no alpha",
     [](v1::JobSpec& j) {
       j.mutable_averaging()->set_rule(v1::AveragingSpec::NONE);
       j.mutable_averaging()->clear_alpha();
     },
     ""},
    {"aggregation", [](v1::JobSpec& j) { j.mutable_collectives()->clear_aggregation(); },
     "collectives.aggregation: \"number 0\" is not known; must be one of allreduce, rooted, sharded"},
    {"order", [](v1::JobSpec& j) { j.mutable_collectives()->set_order(static_cast<v1::CollectivesSpec::Order>(9)); },
     "collectives.order: \"number 9\" is not known; must be one of funneled, concurrent, chained"},
    {"bucket",
     [](v1::JobSpec& j) {
       j.mutable_collectives()->set_overlap(true);
       j.mutable_collectives()->set_bucket_mib(0);
     },
     "collectives.bucket_mib: 0 is out of range; must be a number from 0.001 to 4096"},
    {"tuning", [](v1::JobSpec& j) { j.mutable_collectives()->set_tuning(std::string(65537, ' ')); },
     "collectives.tuning: has 65537 bytes; must be a JSON file of at most 64 KiB"},
    {"empty", [](v1::JobSpec& j) { j.Clear(); },
     "name: \"\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter (and 14 more)"},
};

// For every field that is wrong, the error has its key and says what is wrong or allowed.
TEST(JobSpecCheckTest, SaysWhatIsOutOfRange) {
  for (const Case& c : kCases) {
    v1::JobSpec job = ExampleJob();
    c.change(job);
    const absl::Status status = CheckJobSpec(job);
    EXPECT_EQ(std::string(status.message()), c.message) << c.name;
    EXPECT_EQ(status.code(), c.message[0] == '\0' ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
        << c.name;
  }
}

// A job whose groups have more ranks than any worker has slots is refused. The message names the largest worker and
// site.
TEST(JobSpecCheckTest, RefusesMoreRanksThanAnyWorkerHasSlots) {
  const absl::Status status =
      CheckRanksFit(ExampleJob({1, 8}), {{"w1", "hpc", 2}, {"w2", "hpc", 2}, {"w3", "cloud", 3}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      status.message(),
      "groups.ranks: 8 ranks do not fit: the largest worker, w3 at site cloud, has 3 slots; lower groups.ranks, or "
      "start a worker with --slots=8, or workers on several nodes (docs/several-machines.md)");
}

// The slots of workers of one site that have addresses and the same MPI library are added up. If they are too few, the
// message says how many slots they have.
TEST(JobSpecCheckTest, CountsWorkersOfOneSiteTogether) {
  const FreeWorker a = {"a", "hpc", 2, 2, false, "10.0.0.1", "openmpi"};
  const FreeWorker b = {"b", "hpc", 2, 2, false, "10.0.0.2", "openmpi"};
  EXPECT_TRUE(CheckRanksFit(ExampleJob({1, 4}), {a, b}).ok());
  EXPECT_EQ(CheckRanksFit(ExampleJob({1, 5}), {a, b}).message(),
            "groups.ranks: 5 ranks do not fit: the largest worker, a at site hpc, has 2 slots, and the 2 workers that "
            "site hpc has for groups of several workers have 4 together; lower groups.ranks, or start a worker with "
            "--slots=5, or more workers");
}

// A job may ask for 16384 ranks, in one group or in several together.
TEST(JobSpecCheckTest, TakesTheMostRanks) {
  for (const ExampleGroups& groups : {ExampleGroups{1, 16384}, ExampleGroups{1024, 16}, ExampleGroups{16, 1024}}) {
    const v1::JobSpec job = ExampleJob(groups);
    EXPECT_EQ(CheckJobSpec(job), absl::OkStatus());
    EXPECT_EQ(CheckRanksFit(job, {{"w1", "hpc", 16384}}), absl::OkStatus());
  }
}

// A job that fits is accepted. So is a job whose site no worker has joined yet, because it may wait.
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
