#include "client/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kSample[] = R"(name: fashion
model: lenet
data: {format: idx, train: fm/train, test: /abs/t10k}
train: {epochs: 4, batch_size: 64, optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}, seed: 1}
groups: {count: 2, ranks: 2}
averaging: {rule: elastic, interval: 16}
)";

constexpr char kLeast[] = "name: a\nmodel: mlp\ndata: {train: a, test: b}\n";

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<v1::JobSpec> job = ParseJobFile(text, "job.yaml", "/jobs");
  if (job.ok()) return "no error";
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(job.status().message());
}

// The sample of the documentation reads as written, and relative paths start at the file's folder.
TEST(JobFileTest, ReadsTheSample) {
  const absl::StatusOr<v1::JobSpec> job = ParseJobFile(kSample, "job.yaml", "/jobs");
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

// The least file there is has every default filled in, all in the range that the servers check.
TEST(JobFileTest, FillsInEveryDefault) {
  const absl::StatusOr<v1::JobSpec> job = ParseJobFile(kLeast, "job.yaml", "/jobs");
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

// How the ranks of a group act as one: every key reaches the spec.
TEST(JobFileTest, ReadsCollectives) {
  const absl::StatusOr<v1::JobSpec> job =
      ParseJobFile(absl::StrCat(kLeast, "collectives: {aggregation: rooted, order: concurrent, bucket_mib: 0.25}"),
                   "job.yaml", "/jobs");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->collectives().aggregation(), v1::CollectivesSpec::ROOTED);
  EXPECT_TRUE(job->collectives().overlap());
  EXPECT_EQ(job->collectives().order(), v1::CollectivesSpec::CONCURRENT);
  EXPECT_DOUBLE_EQ(job->collectives().bucket_mib(), 0.25);
}

// A tuning is read from beside the job file and sent as it is.
TEST(JobFileTest, ReadsTheTuning) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/job_file_tuning");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tuning.json") << "{\"rules\": []}\n";
  std::ofstream(folder + "/text.json") << "{rules";
  std::ofstream(folder + "/large.json") << '"' << std::string(64 << 10, 'a') << '"';
  const auto parse = [&folder](absl::string_view name) {
    return ParseJobFile(absl::StrCat(kLeast, "collectives: {tuning: ", name, "}"), "job.yaml", folder);
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
  std::filesystem::remove_all(folder);
}

// Defaults that follow from another key do so.
TEST(JobFileTest, DefaultsFollowTheOptimizerAndTheNumberOfGroups) {
  const auto parse = [](absl::string_view more) {
    return ParseJobFile(absl::StrCat(kLeast, more), "job.yaml", "/jobs").value();
  };
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adam}}").train().optimizer().learning_rate(), 0.001);
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adamw}}").train().optimizer().weight_decay(), 0.01);
  EXPECT_DOUBLE_EQ(parse("train: {optimizer: {name: adamw, weight_decay: 0}}").train().optimizer().weight_decay(), 0);
  EXPECT_DOUBLE_EQ(parse("groups: {count: 10}").averaging().alpha(), 0.09);
  EXPECT_DOUBLE_EQ(parse("groups: {count: 2}\naveraging: {alpha: 0.4}").averaging().alpha(), 0.4);
  EXPECT_EQ(parse("train: {seed: 9007199254740991}").train().seed(), 9007199254740991u);
  EXPECT_EQ(parse("averaging: {rule: none}").averaging().rule(), v1::AveragingSpec::NONE);
}

// Every key of averaging reaches the spec.
TEST(JobFileTest, ReadsAveraging) {
  const auto parse = [](absl::string_view averaging) {
    return ParseJobFile(absl::StrCat(kLeast, "groups: {count: 4}\naveraging: ", averaging), "job.yaml", "/jobs")
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
  EXPECT_DOUBLE_EQ(parse("{rule: diloco, compression: top_k}").averaging().top_k(), 0.01);
}

// Where the file is silent, each rule has the numbers of its paper.
TEST(JobFileTest, AveragingDefaultsFollowTheRule) {
  struct Row {
    const char* rule;
    uint32_t interval;
    double learning_rate;
    double momentum;
  };
  const Row rows[] = {{"sync", 1, 1, 0.75},     {"async", 1, 1, 0.75},     {"ssp", 1, 1, 0.75},
                      {"average", 16, 1, 0.75}, {"downpour", 16, 1, 0.75}, {"elastic", 16, 1, 0.75},
                      {"bmuf", 16, 1, 0.75},    {"slowmo", 16, 1, 0.7},    {"diloco", 64, 0.7, 0.9}};
  for (const Row& row : rows) {
    const absl::StatusOr<v1::JobSpec> job = ParseJobFile(
        absl::StrCat(kLeast, "groups: {count: 4}\naveraging: {rule: ", row.rule, "}"), "job.yaml", "/jobs");
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->averaging().interval(), row.interval) << row.rule;
    EXPECT_DOUBLE_EQ(job->averaging().learning_rate(), row.learning_rate) << row.rule;
    EXPECT_DOUBLE_EQ(job->averaging().momentum(), row.momentum) << row.rule;
    EXPECT_EQ(job->averaging().staleness_bound(), 4 * row.interval) << row.rule;
    EXPECT_EQ(job->averaging().quorum(), 1u) << row.rule;
    EXPECT_DOUBLE_EQ(job->averaging().grace_seconds(), 5) << row.rule;
  }
}

// What averaging and the rest of the file do not allow together is told with what to do.
TEST(JobFileTest, RefusesAveragingThatDoesNotFit) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: sync, quorum: 2}")),
            "job.yaml:4: averaging.quorum: 2 is more than groups.count, which is 1");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: bmuf, momentum: 0, nesterov: true}")),
            "job.yaml:4: averaging.nesterov: needs momentum; set averaging.momentum above 0");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: async}\ncollectives: {aggregation: rooted}")),
            "job.yaml:5: collectives.aggregation: rooted does not apply to averaging.rule async, which needs the "
            "gradients on every rank; use allreduce");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval: 4, interval_seconds: 2}")),
            "job.yaml:4: averaging.interval_seconds: is given beside averaging.interval; keep one of them");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval: 4, delay: 4}")),
            "job.yaml:4: averaging.delay: 4 is not below averaging.interval, which is 4; make it less, or the interval "
            "longer");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval: 8, delay: 4, fragments: 2}")),
            "job.yaml:4: averaging.delay: 4 is not below averaging.interval / averaging.fragments, which is 4; make it "
            "less, or the interval longer");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval: 8, fragments: 3}")),
            "job.yaml:4: averaging.fragments: averaging.interval, which is 8, is not a multiple of 3; change one of "
            "them");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval: auto, fragments: 2}")),
            "job.yaml:4: averaging.interval: auto does not go with averaging.fragments; give a number of steps");
  EXPECT_EQ(
      ErrorOf(absl::StrCat(kLeast, "averaging: {interval: fast}")),
      "job.yaml:4: averaging.interval: \"fast\" is not an integer; must be an integer from 1 to 1000000, or auto");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {interval_seconds: 8, fragments: 2}")),
            "job.yaml:4: averaging.fragments: does not go with averaging.interval_seconds; use averaging.interval");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: sync, fragments: 2}")),
            "job.yaml:4: averaging.fragments: does not apply to averaging.rule sync; only to elastic and average and "
            "bmuf and slowmo and diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epochs: 3}\naveraging: {rule: average, post_local_epochs: 3}")),
            "job.yaml:5: averaging.post_local_epochs: 3 is not below train.epochs, which is 3; make it less, or train "
            "longer");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: average, momentum: 0.5}")),
            "job.yaml:4: averaging.momentum: does not apply to averaging.rule average; only to bmuf and slowmo and "
            "diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: none, compression: top_k}")),
            "job.yaml:4: averaging.compression: top_k does not apply to averaging.rule none, whose groups send all "
            "their parameters; use int8, or another rule");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {compression: int8, top_k: 0.1}")),
            "job.yaml:4: averaging.top_k: does not apply to averaging.compression int8; only to top_k: remove it");
}

struct WrongFile {
  const char* found;     // In kSample...
  const char* replaced;  // ...becomes this.
  const char* error;
};

constexpr WrongFile kWrongFiles[] = {
    {"averaging:", "averging:",
     "job.yaml:6: averging: unknown key; allowed here: name, model, data, train, groups, averaging, collectives (did "
     "you mean "
     "\"averaging\"?)"},
    {"epochs: 4", "epoch: 4",
     "job.yaml:4: train.epoch: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, optimizer, "
     "schedule (did you mean "
     "\"epochs\"?)"},
    {"model: lenet", "model: lenet\nmomentum: 0.9",
     "job.yaml:3: momentum: unknown key; allowed here: name, model, data, train, groups, averaging, collectives (did "
     "you mean "
     "\"train.optimizer.momentum\"?)"},
    {"seed: 1", "zzz: 1",
     "job.yaml:4: train.zzz: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, optimizer, "
     "schedule"},
    {"epochs: 4", "epochs: 0", "job.yaml:4: train.epochs: 0 is out of range; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: -4", "job.yaml:4: train.epochs: -4 is out of range; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: four",
     "job.yaml:4: train.epochs: \"four\" is not an integer; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: \"4\"",
     "job.yaml:4: train.epochs: \"4\" is not an integer; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: 4.5",
     "job.yaml:4: train.epochs: \"4.5\" is not an integer; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: 99999999999999999999",
     "job.yaml:4: train.epochs: 99999999999999999999 is out of range; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: [4]", "job.yaml:4: train.epochs: is a list; must be an integer from 1 to 100000"},
    {"epochs: 4", "epochs: ", "job.yaml:4: train.epochs: has no value; must be an integer from 1 to 100000"},
    {"batch_size: 64", "batch_size: 0",
     "job.yaml:4: train.batch_size: 0 is out of range; must be an integer from 1 to 65536"},
    {"count: 2", "count: 0", "job.yaml:5: groups.count: 0 is out of range; must be an integer from 1 to 1024"},
    {"ranks: 2", "ranks: -1", "job.yaml:5: groups.ranks: -1 is out of range; must be an integer from 1 to 1024"},
    {"interval: 16", "interval: 0",
     "job.yaml:6: averaging.interval: 0 is out of range; must be an integer from 1 to 1000000, or auto"},
    {"interval: 16", "alpha: 1",
     "job.yaml:6: averaging.alpha: 1 is out of range; must be a number above 0 and below 1"},
    {"rule: elastic", "rule: none",
     "job.yaml:6: averaging.interval: does not apply to averaging.rule none; only to elastic and sync and async and "
     "ssp and "
     "downpour and average and bmuf and slowmo and diloco: remove it"},
    {"rule: elastic, interval: 16", "rule: none, alpha: 0.5",
     "job.yaml:6: averaging.alpha: does not apply to averaging.rule none; only to elastic: remove it"},
    {"rule: elastic", "rule: elstic",
     "job.yaml:6: averaging.rule: \"elstic\" is not known; must be one of elastic, none, sync, async, ssp, downpour, "
     "average, bmuf, slowmo, "
     "diloco (did you mean \"elastic\"?)"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {overlap: false, order: funneled}",
     "job.yaml:6: collectives.order: does not apply to collectives.overlap false; only to true: remove it"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {overlap: true, bucket_mib: 0}",
     "job.yaml:6: collectives.bucket_mib: 0 is out of range; must be a number above 0 and at most 4096"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {aggregation: root}",
     "job.yaml:6: collectives.aggregation: \"root\" is not known; must be one of allreduce, rooted, sharded (did you "
     "mean "
     "\"rooted\"?)"},
    {"model: lenet", "model: vgg", "job.yaml:2: model: \"vgg\" is not known; must be one of mlp, lenet, resnet20"},
    {"model: lenet", "", "job.yaml:1: model: is missing; must be one of mlp, lenet, resnet20"},
    {"test: /abs/t10k", "", "job.yaml:3: data.test: is missing; must be a path prefix"},
    {"format: idx", "format: csv", "job.yaml:3: data.format: \"csv\" is not known; must be idx"},
    {"name: fashion", "name: Fashion",
     "job.yaml:1: name: \"Fashion\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"groups: {count: 2, ranks: 2}", "groups: 2", "job.yaml:5: groups: is not a map; allowed here: count, ranks, site"},
    {"learning_rate: 0.05", "learning_rate: 0",
     "job.yaml:4: train.optimizer.learning_rate: 0 is out of range; must be a number above 0"},
    {"learning_rate: 0.05", "learning_rate: .nan",
     "job.yaml:4: train.optimizer.learning_rate: \".nan\" is not a number; must be a number above 0"},
    {"learning_rate: 0.05", "learning_rate: inf",
     "job.yaml:4: train.optimizer.learning_rate: \"inf\" is not a number; must be a number above 0"},
    {"momentum: 0.9", "momentum: 1",
     "job.yaml:4: train.optimizer.momentum: 1 is out of range; must be a number from 0 to below 1"},
    {"momentum: 0.9", "nesterov: true",
     "job.yaml:4: train.optimizer.nesterov: needs momentum; set train.optimizer.momentum above 0"},
    {"momentum: 0.9", "nesterov: yes",
     "job.yaml:4: train.optimizer.nesterov: \"yes\" is neither true nor false; must be true or false"},
    {"name: sgd", "name: adam",
     "job.yaml:4: train.optimizer.momentum: does not apply to train.optimizer.name adam; only to sgd: remove it"},
    {"momentum: 0.9", "beta1: 0.9",
     "job.yaml:4: train.optimizer.beta1: does not apply to train.optimizer.name sgd; only to adam and adamw: remove "
     "it"},
    {"seed: 1", "schedule: {warmup_epochs: 4}",
     "job.yaml:4: train.schedule.warmup_epochs: 4 is not below train.epochs, which is 4; make it less, or train "
     "longer"},
    {"seed: 1", "schedule: {name: step, step_epochs: 5.5}",
     "job.yaml:4: train.schedule.step_epochs: 5.5 is not below train.epochs, which is 4; make it less, or train "
     "longer"},
    {"seed: 1", "schedule: {final_fraction: 0.1}",
     "job.yaml:4: train.schedule.final_fraction: does not apply to train.schedule.name constant; only to cosine: "
     "remove it"},
    {"count: 2,", "count: 2, count: 3,", "job.yaml:5: groups.count: is given twice, first in line 5; keep one"},
    {"model: lenet", "model: lenet\nname: again", "job.yaml:3: name: is given twice, first in line 1; keep one"},
    {"count: 2,", "[1]: 2,", "job.yaml:5: groups: a key is not a text; allowed here: count, ranks, site"},
    {"groups: {count: 2, ranks: 2}", "groups: {count: 2, ranks: 2}}", "job.yaml:5: is not YAML: illegal flow end"},
    {"groups:", "---\ngroups:", "job.yaml:6: a second YAML document begins; a job file describes one job"},
};

// What is wrong, where, and what is allowed: the exact words for each kind of mistake.
TEST(JobFileTest, SaysWhatIsWrong) {
  for (const WrongFile& wrong : kWrongFiles) {
    const std::string text = absl::StrReplaceAll(kSample, {{wrong.found, wrong.replaced}});
    ASSERT_NE(text, kSample) << wrong.found;
    EXPECT_EQ(ErrorOf(text), wrong.error) << text;
  }
}

// All mistakes of a file are told at once, in the order of the file.
TEST(JobFileTest, TellsAllMistakesAtOnce) {
  EXPECT_EQ(ErrorOf("nme: a\nmodel: mlp\ndata: {train: a, test: b}\ngroups: {count: 0}\n"),
            "job.yaml:1: nme: unknown key; allowed here: name, model, data, train, groups, averaging, collectives (did "
            "you mean "
            "\"name\"?)\n"
            "job.yaml:1: name: is missing; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter\n"
            "job.yaml:4: groups.count: 0 is out of range; must be an integer from 1 to 1024");
}

// A wrong key does not hide that others do not go together; nothing is said that rests on a wrong or misspelt key.
TEST(JobFileTest, TellsWhatDoesNotGoTogetherBesideOtherMistakes) {
  EXPECT_EQ(ErrorOf("name: a\nmodel: vgg\ndata: {train: a, test: b}\n"
                    "train:\n  epochs: 4\n  optimizer: {nesterov: true}\n  schedule: {warmup_epochs: 5}\n"
                    "averaging: {rule: none, interval: 16}\n"),
            "job.yaml:2: model: \"vgg\" is not known; must be one of mlp, lenet, resnet20\n"
            "job.yaml:6: train.optimizer.nesterov: needs momentum; set train.optimizer.momentum above 0\n"
            "job.yaml:7: train.schedule.warmup_epochs: 5 is not below train.epochs, which is 4; make it less, or train "
            "longer\n"
            "job.yaml:8: averaging.interval: does not apply to averaging.rule none; only to elastic and sync and async "
            "and ssp and "
            "downpour and average and bmuf and slowmo and diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epochs: 0, schedule: {warmup_epochs: 5}}")),
            "job.yaml:4: train.epochs: 0 is out of range; must be an integer from 1 to 100000");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epoch: 50, schedule: {warmup_epochs: 15}}")),
            "job.yaml:4: train.epoch: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, optimizer, "
            "schedule (did you mean \"epochs\"?)");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rul: none, alpha: 0.5}")),
            "job.yaml:4: averaging.rul: unknown key; allowed here: rule, interval, interval_seconds, delay, fragments, "
            "post_local_epochs, servers, alpha, quorum, "
            "grace_seconds, "
            "learning_rate, "
            "momentum, nesterov, staleness_bound, staleness_power, compression, top_k (did you mean \"rule\"?)");
}

// Texts that are no map of keys are refused, whatever they are, and none crashes.
TEST(JobFileTest, RefusesWhatIsNoJobFile) {
  const std::string empty = "job.yaml: is empty; a job file needs at least name, model, data.train and data.test";
  EXPECT_EQ(ErrorOf(""), empty);
  EXPECT_EQ(ErrorOf("# only a comment\n"), empty);
  EXPECT_EQ(ErrorOf("just words"),
            "job.yaml:1: is not a map of keys; a job file needs at least name, model, data.train and data.test");
  EXPECT_THAT(ErrorOf("- a\n- b\n"), HasSubstr("is not a map of keys"));
  EXPECT_THAT(ErrorOf("name: [\n"), HasSubstr("is not YAML"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("is not YAML"));
  EXPECT_THAT(ErrorOf(absl::string_view("\x7f"
                                        "ELF\x00\x01\x02",
                                        7)),
              HasSubstr("job.yaml"));
}

class JobFileOnDiskTest : public ::testing::Test {
 protected:
  JobFileOnDiskTest() { std::filesystem::create_directories(folder_); }
  ~JobFileOnDiskTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "job_file_test";
};

// A file that is not there, a folder and a huge file give an error that names it.
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
  const absl::StatusOr<v1::JobSpec> job = ReadJobFile(path);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().train(), (folder_ / "a").string());
  EXPECT_EQ(job->data().test(), (folder_.parent_path() / "b").lexically_normal().string());
}

// The job files that are shipped are right, and differ where they say so.
TEST(ShippedJobFilesTest, AreRight) {
  const absl::StatusOr<v1::JobSpec> fashion = ReadJobFile("deploy/jobs/fashion.yaml");
  ASSERT_TRUE(fashion.ok()) << fashion.status();
  EXPECT_EQ(fashion->groups().count(), 2u);
  EXPECT_EQ(fashion->groups().ranks(), 2u);
  const absl::StatusOr<v1::JobSpec> none = ReadJobFile("deploy/jobs/fashion-none.yaml");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->averaging().rule(), v1::AveragingSpec::NONE);
  EXPECT_EQ(none->train().SerializeAsString(), fashion->train().SerializeAsString());
  const absl::StatusOr<v1::JobSpec> one_group = ReadJobFile("deploy/jobs/fashion-1x4.yaml");
  ASSERT_TRUE(one_group.ok()) << one_group.status();
  EXPECT_EQ(one_group->groups().count(), 1u);
  EXPECT_EQ(one_group->groups().ranks(), 4u);
}

// The six modes of MXNET-MPI are each a job file: the rule, and groups of one rank or of several.
TEST(ShippedJobFilesTest, SixModes) {
  for (const std::string ranks : {"dist", "mpi"}) {
    for (const auto& [mode, rule] :
         {std::make_pair("sgd", v1::AveragingSpec::SYNC), std::make_pair("asgd", v1::AveragingSpec::ASYNC),
          std::make_pair("esgd", v1::AveragingSpec::ELASTIC)}) {
      const absl::StatusOr<v1::JobSpec> job =
          ReadJobFile(absl::StrCat("deploy/jobs/modes/", ranks, "-", mode, ".yaml"));
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
