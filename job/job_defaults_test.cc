#include "job/job_defaults.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "algorithms/elastic.h"
#include "job/job_check.h"
#include "job/job_field.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

using google::protobuf::util::MessageDifferencer;

v1::JobSpec ShortJob() {
  v1::JobSpec job;
  job.set_name("short");
  job.mutable_model()->set_name("mlp");
  job.mutable_data()->set_train("/data/train");
  job.mutable_data()->set_test("/data/test");
  return job;
}

// A job with four fields set is complete, as a job file with four keys is.
TEST(JobDefaultsTest, FourFieldsAreAJob) {
  EXPECT_FALSE(CheckJob(ShortJob()).empty());
  const v1::JobSpec job = FillDefaults(ShortJob());
  for (const JobProblem& problem : CheckJob(job)) ADD_FAILURE() << problem.key << ": " << problem.message;
  EXPECT_EQ(job.train().epochs(), 10u);
  EXPECT_EQ(job.train().seed(), 1u);
  EXPECT_EQ(job.train().optimizer().learning_rate(), 0.05);
  EXPECT_EQ(job.train().optimizer().beta2(), 0.999);
  EXPECT_EQ(job.averaging().rule(), v1::AveragingSpec::ELASTIC);
  EXPECT_EQ(job.averaging().interval(), 16u);
  EXPECT_EQ(job.averaging().alpha(), 0.5);
  EXPECT_EQ(job.averaging().grace_seconds(), 5);
  EXPECT_EQ(job.averaging().compression(), v1::AveragingSpec::COMPRESSION_NONE);
  EXPECT_TRUE(job.collectives().overlap());
}

// A default never takes the place of a value that a client has sent, not even of 0 where 0 is allowed.
TEST(JobDefaultsTest, KeepsWhatIsGiven) {
  for (const JobKey& key : JobKeys()) {
    v1::JobSpec job = ShortJob();
    KeyValue value;
    value.text = key.type == KeyType::kChoice ? key.choices.back() : "text";
    value.integer = static_cast<uint64_t>(key.range.min);
    value.number = key.range.min;
    value.boolean = key.preset != "true";
    value.texts = {"A=b"};
    SetField(key, value, job);
    const KeyValue filled = GetField(key, FillDefaults(job));
    EXPECT_EQ(filled.text, GetField(key, job).text) << key.path;
  }
}

// An unset number or boolean reads as 0. So for each key 0 must be the default, or not allowed, or the field must be
// `optional`. Otherwise a job that leaves the key out would look like one that sets it to 0.
TEST(JobDefaultsTest, ZeroIsNeverMistaken) {
  const v1::JobSpec filled = FillDefaults(ShortJob());
  for (const JobKey& key : JobKeys()) {
    KeyValue zero;
    zero.text = key.type == KeyType::kBoolean ? "false" : "0";
    if (key.type != KeyType::kInteger && key.type != KeyType::kNumber && key.type != KeyType::kBoolean) continue;
    v1::JobSpec job;
    SetField(key, zero, job);
    const bool allowed = key.unused.has_value() || CheckKeyValue(key, zero).ok();
    // All values from 0 to `unused` mean the same.
    const bool is_default = GetField(key, filled).text == zero.text || key.unused.has_value();
    EXPECT_TRUE(!allowed || is_default || IsGiven(key, job)) << key.path;
  }
}

// A default that follows from other keys uses the given values of those keys. A second call changes nothing.
TEST(JobDefaultsTest, FollowsOtherKeys) {
  v1::JobSpec job = ShortJob();
  job.mutable_groups()->set_count(4);
  job.mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::ADAMW);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::DILOCO);
  job.mutable_train()->set_epochs(6);
  const v1::JobSpec filled = FillDefaults(job);
  EXPECT_EQ(filled.train().optimizer().learning_rate(), 0.001);
  EXPECT_EQ(filled.train().optimizer().weight_decay(), 0.01);
  EXPECT_EQ(filled.train().schedule().step_epochs(), 2);
  EXPECT_EQ(filled.averaging().interval(), 64u);
  EXPECT_EQ(filled.averaging().staleness_bound(), 256u);
  EXPECT_EQ(filled.averaging().learning_rate(), 0.7);
  EXPECT_EQ(filled.averaging().momentum(), 0.9);
  EXPECT_EQ(filled.averaging().alpha(), 0.2);
  EXPECT_TRUE(MessageDifferencer::Equals(FillDefaults(filled), filled));

  v1::JobSpec many = job;
  many.mutable_groups()->set_count(12);
  EXPECT_EQ(FillDefaults(many).averaging().alpha(), DefaultElasticAlpha(12));

  job.mutable_averaging()->set_rule(v1::AveragingSpec::BMUF);
  EXPECT_EQ(FillDefaults(job).averaging().momentum(), 0.75);
  job.mutable_averaging()->set_momentum(0);
  EXPECT_EQ(FillDefaults(job).averaging().momentum(), 0);
  job.mutable_averaging()->set_interval_auto(true);
  EXPECT_EQ(FillDefaults(job).averaging().interval(), 16u);
  EXPECT_TRUE(FillDefaults(job).averaging().interval_auto());
}

}  // namespace
}  // namespace hooke
