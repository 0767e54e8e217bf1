#include "job/model_file/export_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

v1::JobStatus SucceededJob(const std::string& job_id) {
  v1::JobStatus job;
  job.set_job_id(job_id);
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.mutable_spec()->mutable_model()->set_name("lenet");
  job.mutable_spec()->mutable_train()->set_batch_size(64);
  job.mutable_spec()->mutable_groups()->set_count(2);
  job.mutable_spec()->mutable_groups()->set_ranks(2);
  job.mutable_spec()->mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  job.mutable_center()->set_accuracy(0.9012);
  return job;
}

std::map<std::string, std::string> Texts(const v1::JobStatus& job, const v1::Layout& layout) {
  const Metadata metadata = ExportMetadata(job, layout);
  std::map<std::string, std::string> texts(metadata.begin(), metadata.end());
  EXPECT_EQ(texts.size(), metadata.size()) << "a key comes twice";
  return texts;
}

v1::Layout Described() {
  v1::Layout layout;
  v1::ModelDescription& model = *layout.mutable_model();
  model.set_architecture("lenet");
  model.set_architecture_version(3);
  for (const uint32_t extent : {1, 28, 28}) model.add_input_shape(extent);
  model.set_input_type("uint8");
  model.set_input_scale(255);
  model.set_mean(1.0 / 3);
  model.set_deviation(0.25);
  model.set_classes(10);
  return layout;
}

// The metadata have all that is needed to use the model, and the job from which it comes.
TEST(ExportMetadata, SaysWhatTheModelIs) {
  v1::JobStatus job = SucceededJob("fashion-1");
  job.mutable_center()->set_accuracy(0.8388);
  job.mutable_center()->set_samples(10000);
  job.mutable_center()->set_epoch(6);
  job.mutable_center()->set_step(1404);
  job.mutable_spec()->mutable_averaging()->set_rule(v1::AveragingSpec::SLOWMO);
  job.mutable_spec()->mutable_groups()->set_count(2);
  job.mutable_spec()->mutable_groups()->set_ranks(4);
  job.mutable_spec()->mutable_train()->set_epochs(6);
  EXPECT_THAT(Texts(job, Described()), IsSupersetOf({Pair("hooke_format", "1"),
                                                     Pair("hooke_version", HOOKE_VERSION),
                                                     Pair("hooke_job", "fashion-1"),
                                                     Pair("job_state", "succeeded"),
                                                     Pair("architecture", "lenet"),
                                                     Pair("architecture_version", "3"),
                                                     Pair("input_shape", "[1, 28, 28]"),
                                                     Pair("input_type", "uint8"),
                                                     Pair("input_scale", "255"),
                                                     Pair("mean", "0.3333333333333333"),
                                                     Pair("std", "0.25"),
                                                     Pair("classes", "10"),
                                                     Pair("rule", "slowmo"),
                                                     Pair("groups", "2"),
                                                     Pair("ranks", "4"),
                                                     Pair("epochs", "6"),
                                                     Pair("center_test_accuracy", "0.8388"),
                                                     Pair("center_test_samples", "10000"),
                                                     Pair("center_epoch", "6"),
                                                     Pair("center_step", "1404")}));
}

// Where groups differ, their kinds are listed. Where they are all alike, `groups` and `ranks` say everything.
TEST(ExportMetadata, ListsKindsOnlyWhereGroupsDiffer) {
  v1::JobStatus job = SucceededJob("fashion-1");
  EXPECT_THAT(Texts(job, Described()), Not(Contains(Key("group_kinds"))));
  v1::GroupsSpec& groups = *job.mutable_spec()->mutable_groups();
  groups.set_count(3);
  groups.set_ranks(4);
  for (const auto& [site, count, ranks] : {std::tuple("hpc", 1, 4), std::tuple("cloud", 2, 1)}) {
    v1::GroupKind& kind = *groups.add_kinds();
    kind.set_site(site);
    kind.set_count(count);
    kind.set_ranks(ranks);
    kind.set_batch_size(job.spec().train().batch_size());
  }
  EXPECT_THAT(Texts(job, Described()),
              IsSupersetOf({Pair("group_kinds", "1 group x 4 ranks at hpc, 2 groups x 1 rank at cloud"),
                            Pair("groups", "3"), Pair("ranks", "4")}));
}

// A command has its own epochs, and no network that Hooke knows by name.
TEST(ExportMetadata, OfACommandLeavesOutWhatOnlyItKnows) {
  v1::JobStatus job = SucceededJob("own-1");
  job.mutable_spec()->clear_model();
  job.mutable_spec()->mutable_command()->add_arguments("train");
  job.mutable_spec()->mutable_train()->set_epochs(10);
  const auto texts = Texts(job, v1::Layout());
  EXPECT_THAT(texts, Not(Contains(Key("epochs"))));
  EXPECT_THAT(texts, Not(Contains(Key("architecture"))));
  EXPECT_THAT(texts, IsSupersetOf({Pair("hooke_job", "own-1")}));
}

// Steps and answered exchanges are listed group by group. Both are left out if one group's are unknown.
TEST(ExportMetadata, CountsStepsAndExchanges) {
  v1::JobStatus job = SucceededJob("fashion-1");
  job.clear_groups();
  for (const uint64_t steps : {480, 464}) {
    v1::RankProgress& progress = *job.add_groups()->mutable_progress();
    progress.set_step(steps);
    progress.set_exchanges(steps / 16);
    progress.set_exchange_failures(2);
  }
  EXPECT_THAT(Texts(job, Described()),
              IsSupersetOf({Pair("group_steps", "[480, 464]"), Pair("group_exchanges", "[28, 27]")}));
  job.mutable_groups(1)->clear_progress();
  EXPECT_THAT(Texts(job, Described()), Not(Contains(Key("group_steps"))));
}

// If a job has no description and no evaluation, the metadata leave out the facts that come from these.
TEST(ExportMetadata, LeavesOutWhatIsNotKnown) {
  v1::JobStatus job = SucceededJob("fashion-1");
  job.clear_center();
  const std::map<std::string, std::string> texts = Texts(job, {});
  EXPECT_EQ(texts.at("architecture"), job.spec().model().name());
  for (const char* key : {"mean", "std", "input_shape", "architecture_version", "classes", "center_test_accuracy"}) {
    EXPECT_EQ(texts.count(key), 0u) << key;
  }
}

}  // namespace
}  // namespace hooke
