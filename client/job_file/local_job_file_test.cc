#include "client/job_file/local_job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/job_file/job_file_samples.h"
#include "job/job_defaults.h"
#include "job/job_field.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

absl::StatusOr<v1::JobSpec> SpecOf(absl::StatusOr<LocalJobFile> file) {
  if (!file.ok()) return file.status();
  return std::move(file->spec);
}

using ::testing::HasSubstr;

// The sample of the documentation gives the values that it shows. Relative paths start at the file's folder.
TEST(JobFileTest, ReadsTheSample) {
  const absl::StatusOr<v1::JobSpec> job = SpecOf(ParseJobFile(kSample, "job.yaml", "/jobs"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "fashion");
  EXPECT_EQ(job->model().name(), "lenet");
  EXPECT_EQ(job->data().format(), v1::DataSpec::FORMAT_IDX);
  EXPECT_EQ(job->data().train(), "/jobs/fm/train");
  EXPECT_EQ(job->data().test(), "/abs/t10k");
  EXPECT_EQ(job->train().epochs(), 4u);
  EXPECT_EQ(job->train().batch_size(), 64u);
  EXPECT_EQ(job->train().seed(), 1u);
  EXPECT_EQ(job->train().optimizer().name(), v1::OptimizerSpec::SGD);
  EXPECT_DOUBLE_EQ(job->train().optimizer().learning_rate(), 0.05);
  EXPECT_DOUBLE_EQ(job->train().optimizer().momentum(), 0.9);
  EXPECT_EQ(job->groups().count(), 2u);
  EXPECT_EQ(job->groups().ranks(), 2u);
  EXPECT_EQ(job->averaging().rule(), v1::AveragingSpec::ELASTIC);
  EXPECT_EQ(job->averaging().interval(), 16u);
  EXPECT_DOUBLE_EQ(job->averaging().alpha(), 1.0 / 3);
}

// The shortest possible file gets the defaults of all other keys.
TEST(JobFileTest, FillsInEveryDefault) {
  const absl::StatusOr<v1::JobSpec> job = SpecOf(ParseJobFile(kLeast, "job.yaml", "/jobs"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->train().epochs(), 10u);
  EXPECT_EQ(job->train().batch_size(), 64u);
  EXPECT_EQ(job->train().evaluate_every(), 1u);
  EXPECT_EQ(job->train().optimizer().name(), v1::OptimizerSpec::SGD);
  EXPECT_DOUBLE_EQ(job->train().optimizer().learning_rate(), 0.05);
  EXPECT_DOUBLE_EQ(job->train().optimizer().weight_decay(), 0);
  EXPECT_DOUBLE_EQ(job->train().optimizer().beta2(), 0.999);
  EXPECT_DOUBLE_EQ(job->train().optimizer().epsilon(), 1e-8);
  EXPECT_EQ(job->train().schedule().name(), v1::ScheduleSpec::CONSTANT);
  EXPECT_DOUBLE_EQ(job->train().schedule().step_epochs(), 10 / 3.0);
  EXPECT_DOUBLE_EQ(job->train().schedule().step_factor(), 0.1);
  EXPECT_EQ(job->groups().count(), 1u);
  EXPECT_EQ(job->groups().site(), "");
  EXPECT_DOUBLE_EQ(job->averaging().alpha(), 0.5);
  EXPECT_EQ(job->collectives().aggregation(), v1::CollectivesSpec::ALLREDUCE);
  EXPECT_TRUE(job->collectives().overlap());
  EXPECT_EQ(job->collectives().order(), v1::CollectivesSpec::FUNNELED);
  EXPECT_DOUBLE_EQ(job->collectives().bucket_mib(), 4);
}

// A client in another language may send only the keys of a short file. The coordinator fills in the rest, and the job
// is the same.
TEST(JobFileTest, AShortSpecIsTheSameJobAsAShortFile) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> jobs = {
      {},
      {{"train.optimizer.name", "adamw"}, {"groups.count", "3"}, {"train.seed", "0"}},
      {{"train.optimizer.weight_decay", "0"}, {"train.optimizer.name", "adamw"}, {"train.epochs", "7"}},
      {{"train.schedule.name", "step"}, {"train.epochs", "4"}, {"train.evaluate_every", "0"}},
      {{"averaging.rule", "bmuf"}, {"groups.count", "4"}, {"averaging.momentum", "0"}},
      {{"averaging.rule", "bmuf"}, {"groups.count", "4"}},
      {{"averaging.rule", "slowmo"}, {"averaging.interval", "auto"}},
      {{"averaging.rule", "diloco"}, {"averaging.grace_seconds", "0"}},
      {{"averaging.rule", "ssp"}, {"averaging.interval", "3"}},
      {{"averaging.rule", "sync"}, {"averaging.compression", "top_k"}},
      {{"averaging.rule", "downpour"}, {"averaging.interval_seconds", "2"}},
      {{"averaging.rule", "none"}, {"collectives.overlap", "false"}},
  };
  for (const auto& keys : jobs) {
    std::string file = "name: a\nmodel: mlp\ndata: {train: /a, test: /b}\n";
    v1::JobSpec spec;
    spec.set_name("a");
    spec.mutable_model()->set_name("mlp");
    spec.mutable_data()->set_train("/a");
    spec.mutable_data()->set_test("/b");
    std::map<std::string, std::vector<std::string>> sections;
    for (const auto& [path, text] : keys) {
      const JobKey& key = *FindJobKey(path);
      SetField(key, ParseKeyValue(key, text, /*quoted=*/false).value(), spec);
      const std::vector<std::string> parts = absl::StrSplit(path, '.');
      const std::string value = absl::StrCat(parts.back(), ": ", text);
      sections[parts[0]].push_back(parts.size() == 2 ? value : absl::StrCat(parts[1], ": {", value, "}"));
    }
    for (const auto& [name, values] : sections) absl::StrAppend(&file, name, ": {", absl::StrJoin(values, ", "), "}\n");
    file = absl::StrReplaceAll(file, {{"}, optimizer: {", ", "}});
    const absl::StatusOr<v1::JobSpec> read = SpecOf(ParseJobFile(file, "job.yaml", "/jobs"));
    ASSERT_TRUE(read.ok()) << file << read.status();
    EXPECT_EQ(FillDefaults(spec).ShortDebugString(), read->ShortDebugString()) << file;
  }
}

// Keys of `collectives` reach the spec.
TEST(JobFileTest, ReadsCollectives) {
  const absl::StatusOr<v1::JobSpec> job = SpecOf(
      ParseJobFile(absl::StrCat(kLeast, "collectives: {aggregation: rooted, order: concurrent, bucket_mib: 0.25}"),
                   "job.yaml", "/jobs"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->collectives().aggregation(), v1::CollectivesSpec::ROOTED);
  EXPECT_TRUE(job->collectives().overlap());
  EXPECT_EQ(job->collectives().order(), v1::CollectivesSpec::CONCURRENT);
  EXPECT_DOUBLE_EQ(job->collectives().bucket_mib(), 0.25);
}

// A tuning file beside the job file is read and sent unchanged.
TEST(JobFileTest, ReadsTheTuning) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/job_file_tuning");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tuning.json") << "{\"rules\": []}\n";
  std::ofstream(folder + "/text.json") << "{rules";
  std::ofstream(folder + "/large.json") << '"' << std::string(64 << 10, 'a') << '"';
  const auto parse = [&folder](absl::string_view name) {
    return SpecOf(ParseJobFile(absl::StrCat(kLeast, "collectives: {tuning: ", name, "}"), "job.yaml", folder));
  };
  const absl::StatusOr<v1::JobSpec> job = parse("tuning.json");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->collectives().tuning(), "{\"rules\": []}\n");
  EXPECT_THAT(std::string(parse("none.json").status().message()),
              AllOf(HasSubstr("collectives.tuning: "), HasSubstr("none.json cannot be read: No such file")));
  EXPECT_THAT(std::string(parse("text.json").status().message()),
              HasSubstr("text.json is not JSON; must be a JSON file of at most 64 KiB"));
  EXPECT_THAT(std::string(parse("large.json").status().message()), HasSubstr("large.json is larger than 64 KiB"));
  EXPECT_THAT(std::string(parse(".").status().message()), HasSubstr(" is a folder"));
  // No process writes into the pipe, so reading it would never end.
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(parse("pipe").status().message()),
              HasSubstr("pipe is no plain file, but a device, pipe or socket; must be a JSON file"));
  std::filesystem::remove_all(folder);
}

// `groups` may be a list of kinds.
TEST(JobFileTest, ReadsKindsOfGroups) {
  const std::string text = absl::StrCat(
      kLeast, "groups:\n- {site: hpc, ranks: 4}\n- {site: cloud, count: 2, batch_size: 16}\n- {site: \"\"}\n");
  const absl::StatusOr<v1::JobSpec> job = SpecOf(ParseJobFile(text, "job.yaml", "/jobs"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->groups().count(), 4u);
  EXPECT_EQ(job->groups().ranks(), 4u);
  ASSERT_EQ(job->groups().kinds_size(), 3);
  EXPECT_EQ(job->groups().kinds(0).ShortDebugString(), "count: 1 ranks: 4 site: \"hpc\" batch_size: 64");
  EXPECT_EQ(job->groups().kinds(1).ShortDebugString(), "count: 2 ranks: 1 site: \"cloud\" batch_size: 16");
  EXPECT_EQ(job->groups().kinds(2).ShortDebugString(), "count: 1 ranks: 1 batch_size: 64");
}

// The defaults of some keys depend on another key, such as the optimizer or the number of groups.
TEST(JobFileTest, DefaultsFollowTheOptimizerAndTheNumberOfGroups) {
  const auto parse = [](absl::string_view more) {
    return SpecOf(ParseJobFile(absl::StrCat(kLeast, more), "job.yaml", "/jobs")).value();
  };
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adam}}").train().optimizer().learning_rate(), 0.001);
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adamw}}").train().optimizer().weight_decay(), 0.01);
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adamw, weight_decay: 0}}").train().optimizer().weight_decay(), 0);
  EXPECT_DOUBLE_EQ(parse("groups: {count: 10}").averaging().alpha(), 0.09);
  EXPECT_DOUBLE_EQ(parse("groups: {count: 2}\naveraging: {alpha: 0.4}").averaging().alpha(), 0.4);
  EXPECT_EQ(parse("train: {seed: 9007199254740991}").train().seed(), 9007199254740991u);
  EXPECT_EQ(parse("averaging: {rule: none}").averaging().rule(), v1::AveragingSpec::NONE);
}

// Keys of `averaging` reach the spec.
TEST(JobFileTest, ReadsAveraging) {
  const auto parse = [](absl::string_view averaging) {
    return SpecOf(ParseJobFile(absl::StrCat(kLeast, "groups: {count: 4}\naveraging: ", averaging), "job.yaml", "/jobs"))
        .value();
  };
  const v1::AveragingSpec bmuf =
      parse(
          "{rule: bmuf, interval: 8, quorum: 3, grace_seconds: 2.5, learning_rate: 0.9, momentum: 0.6, nesterov: true}")
          .averaging();
  EXPECT_EQ(bmuf.rule(), v1::AveragingSpec::BMUF);
  EXPECT_EQ(bmuf.interval(), 8u);
  EXPECT_EQ(bmuf.quorum(), 3u);
  EXPECT_DOUBLE_EQ(bmuf.grace_seconds(), 2.5);
  EXPECT_DOUBLE_EQ(bmuf.learning_rate(), 0.9);
  EXPECT_DOUBLE_EQ(bmuf.momentum(), 0.6);
  EXPECT_TRUE(bmuf.nesterov());
  const v1::AveragingSpec ssp = parse("{rule: ssp, staleness_bound: 5, staleness_power: 0.5}").averaging();
  EXPECT_EQ(ssp.rule(), v1::AveragingSpec::SSP);
  EXPECT_EQ(ssp.staleness_bound(), 5u);
  EXPECT_DOUBLE_EQ(ssp.staleness_power(), 0.5);
  EXPECT_DOUBLE_EQ(ssp.interval_seconds(), 0);
  EXPECT_DOUBLE_EQ(parse("{rule: average, interval_seconds: 1.5}").averaging().interval_seconds(), 1.5);
  const v1::AveragingSpec streaming = parse("{rule: average, interval: 12, delay: 2, fragments: 4}").averaging();
  EXPECT_EQ(streaming.fragments(), 4u);
  EXPECT_EQ(parse("{rule: average}").averaging().fragments(), 1u);
  const v1::AveragingSpec adapted = parse("{rule: diloco, interval: auto, delay: 63}").averaging();
  EXPECT_TRUE(adapted.interval_auto());
  EXPECT_EQ(adapted.interval(), 64u);
  EXPECT_FALSE(streaming.interval_auto());
  EXPECT_EQ(parse("{rule: average}").averaging().post_local_epochs(), 0u);
  EXPECT_EQ(parse("{rule: average, post_local_epochs: 2}").averaging().post_local_epochs(), 2u);
  EXPECT_EQ(parse("{rule: average}").averaging().delay(), 0u);
  EXPECT_EQ(parse("{rule: average, delay: 15}").averaging().delay(), 15u);
  EXPECT_EQ(parse("{interval_seconds: 1.5, delay: 100}").averaging().delay(), 100u);
  EXPECT_EQ(ssp.compression(), v1::AveragingSpec::COMPRESSION_NONE);
  EXPECT_EQ(parse("{compression: bfloat16}").averaging().compression(), v1::AveragingSpec::COMPRESSION_BFLOAT16);
  EXPECT_EQ(parse("{compression: int4}").averaging().compression(), v1::AveragingSpec::COMPRESSION_INT4);
  const v1::AveragingSpec top_k = parse("{rule: diloco, compression: top_k, top_k: 0.02}").averaging();
  EXPECT_EQ(top_k.compression(), v1::AveragingSpec::COMPRESSION_TOP_K);
  EXPECT_DOUBLE_EQ(top_k.top_k(), 0.02);
  EXPECT_DOUBLE_EQ(parse("{rule: diloco, compression: top_k}").averaging().top_k(), 0.1);
}

// If the file does not set a rule's numbers, they are the rule's own defaults.
TEST(JobFileTest, AveragingDefaultsFollowTheRule) {
  struct Row {
    const char* rule;
    uint32_t interval;
    double learning_rate;
    double momentum;
  };
  const Row rows[] = {{"sync", 1, 1, 0},     {"async", 1, 1, 0},     {"ssp", 1, 1, 0},
                      {"average", 16, 1, 0}, {"downpour", 16, 1, 0}, {"elastic", 16, 1, 0},
                      {"bmuf", 16, 1, 0.75}, {"slowmo", 16, 1, 0.7}, {"diloco", 64, 0.7, 0.9}};
  for (const Row& row : rows) {
    const absl::StatusOr<v1::JobSpec> job = SpecOf(ParseJobFile(
        absl::StrCat(kLeast, "groups: {count: 4}\naveraging: {rule: ", row.rule, "}"), "job.yaml", "/jobs"));
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->averaging().interval(), row.interval) << row.rule;
    EXPECT_DOUBLE_EQ(job->averaging().learning_rate(), row.learning_rate) << row.rule;
    EXPECT_DOUBLE_EQ(job->averaging().momentum(), row.momentum) << row.rule;
    EXPECT_EQ(job->averaging().staleness_bound(), 4 * row.interval) << row.rule;
    EXPECT_EQ(job->averaging().quorum(), 0u) << row.rule << ": all groups that live";
    EXPECT_DOUBLE_EQ(job->averaging().grace_seconds(), 5) << row.rule;
  }
}

class JobFileOnDiskTest : public ::testing::Test {
 protected:
  JobFileOnDiskTest() { std::filesystem::create_directories(folder_); }
  ~JobFileOnDiskTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "job_file_test";
};

// For a missing file, a folder or a huge file, the error has its name.
TEST_F(JobFileOnDiskTest, RefusesWhatCannotBeRead) {
  const std::string missing = folder_ / "missing.yaml";
  EXPECT_EQ(ReadJobFile(missing).status(),
            absl::NotFoundError(missing + ": no such file; name a job file (docs/job-file.md says what is in one)"));
  EXPECT_EQ(ReadJobFile(folder_).status(),
            absl::FailedPreconditionError(folder_.string() +
                                          ": is a folder; name a job file (docs/job-file.md says what is in one)"));
  const std::string huge = folder_ / "huge.yaml";
  std::ofstream(huge) << std::string(2 << 20, '#');
  EXPECT_THAT(std::string(ReadJobFile(huge).status().message()), HasSubstr("is larger than 1 MiB"));
}

// Relative paths in a file on disk start at its folder.
TEST_F(JobFileOnDiskTest, PathsAreRelativeToTheFile) {
  const std::string path = folder_ / "job.yaml";
  std::ofstream(path) << "name: a\nmodel: mlp\ndata: {train: a, test: ../b}\n";
  const absl::StatusOr<v1::JobSpec> job = SpecOf(ReadJobFile(path));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().train(), (folder_ / "a").string());
  EXPECT_EQ(job->data().test(), (folder_.parent_path() / "b").lexically_normal().string());
}

// The shipped job files are valid, and they differ from each other as their comments say.
TEST(ShippedJobFilesTest, AreRight) {
  const absl::StatusOr<v1::JobSpec> fashion = SpecOf(ReadJobFile("deploy/jobs/fashion.yaml"));
  ASSERT_TRUE(fashion.ok()) << fashion.status();
  EXPECT_EQ(fashion->groups().count(), 2u);
  EXPECT_EQ(fashion->groups().ranks(), 2u);
  const absl::StatusOr<v1::JobSpec> none = SpecOf(ReadJobFile("deploy/jobs/fashion-none.yaml"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->averaging().rule(), v1::AveragingSpec::NONE);
  EXPECT_EQ(none->train().SerializeAsString(), fashion->train().SerializeAsString());
  const absl::StatusOr<v1::JobSpec> one_group = SpecOf(ReadJobFile("deploy/jobs/fashion-1x4.yaml"));
  ASSERT_TRUE(one_group.ok()) << one_group.status();
  EXPECT_EQ(one_group->groups().count(), 1u);
  EXPECT_EQ(one_group->groups().ranks(), 4u);
}

// There is a shipped job file for each of the six modes of MXNET-MPI: a rule, with groups of one rank or of several.
TEST(ShippedJobFilesTest, SixModes) {
  for (const std::string ranks : {"dist", "mpi"}) {
    for (const auto& [mode, rule] :
         {std::make_pair("sgd", v1::AveragingSpec::SYNC), std::make_pair("asgd", v1::AveragingSpec::ASYNC),
          std::make_pair("esgd", v1::AveragingSpec::ELASTIC)}) {
      const absl::StatusOr<v1::JobSpec> job =
          SpecOf(ReadJobFile(absl::StrCat("deploy/jobs/modes/", ranks, "-", mode, ".yaml")));
      ASSERT_TRUE(job.ok()) << job.status();
      EXPECT_EQ(job->name(), absl::StrCat(ranks, "-", mode));
      EXPECT_EQ(job->averaging().rule(), rule) << job->name();
      EXPECT_EQ(job->groups().ranks() > 1, ranks == "mpi") << job->name();
      EXPECT_GT(job->groups().count(), 1u) << job->name();
    }
  }
}

}  // namespace
}  // namespace hooke
