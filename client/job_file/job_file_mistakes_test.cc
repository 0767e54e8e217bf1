// Wrong job files: what is wrong, at which line, and what is allowed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/job_file/job_file_samples.h"
#include "client/job_file/local_job_file.h"
#include "job/job_defaults.h"
#include "job/job_field.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Values of `averaging` that do not go with the rest of the file are reported, and the message says what to do.
TEST(JobFileMistakesTest, RefusesAveragingThatDoesNotFit) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: sync, quorum: 2}")),
            "job.yaml:4: averaging.quorum: 2 is more than groups.count, which is 1; make it less, or have more groups");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: bmuf, momentum: 0, nesterov: true}")),
            "job.yaml:4: averaging.nesterov: needs averaging.momentum above 0; set it");
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
            "job.yaml:4: averaging.fragments: does not apply to averaging.rule sync; only to elastic, average, bmuf, "
            "slowmo and diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epochs: 3}\naveraging: {rule: average, post_local_epochs: 3}")),
            "job.yaml:5: averaging.post_local_epochs: 3 is not below train.epochs, which is 3; make it less, or train "
            "longer");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: average, momentum: 0.5}")),
            "job.yaml:4: averaging.momentum: does not apply to averaging.rule average; only to bmuf, slowmo and "
            "diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rule: none, compression: top_k}")),
            "job.yaml:4: averaging.compression: top_k does not apply to averaging.rule none, whose groups send all "
            "their parameters; use int8, or another rule");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {compression: int8, top_k: 0.1}")),
            "job.yaml:4: averaging.top_k: does not apply to averaging.compression int8; only to top_k: remove it");
}

struct WrongFile {
  const char* found;     // A piece of kSample.
  const char* replaced;  // Replaces `found`.
  const char* error;
};

constexpr WrongFile kWrongFiles[] = {
    {"averaging:", "averging:",
     "job.yaml:6: averging: unknown key; allowed here: name, priority, owner, preemptible, model, data, command, "
     "environment, directory, "
     "files, "
     "sites, train, "
     "groups, averaging, collectives (did "
     "you mean "
     "\"averaging\"?)"},
    {"epochs: 4", "epoch: 4",
     "job.yaml:4: train.epoch: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, state_seconds, "
     "optimizer, "
     "schedule (did you mean "
     "\"epochs\"?)"},
    {"model: lenet", "model: lenet\nmomentum: 0.9",
     "job.yaml:3: momentum: unknown key; allowed here: name, priority, owner, preemptible, model, data, command, "
     "environment, directory, "
     "files, "
     "sites, train, "
     "groups, averaging, collectives (did "
     "you mean "
     "\"train.optimizer.momentum\"?)"},
    {"seed: 1", "zzz: 1",
     "job.yaml:4: train.zzz: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, state_seconds, "
     "optimizer, "
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
    {"ranks: 2", "ranks: -1", "job.yaml:5: groups.ranks: -1 is out of range; must be an integer from 1 to 16384"},
    {"interval: 16", "interval: 0",
     "job.yaml:6: averaging.interval: 0 is out of range; must be an integer from 1 to 1000000, or auto"},
    {"interval: 16", "alpha: 1",
     "job.yaml:6: averaging.alpha: 1 is out of range; must be a number from 1e-6 to 0.999999"},
    {"rule: elastic", "rule: none",
     "job.yaml:6: averaging.interval: does not apply to averaging.rule none; only to elastic, sync, async, ssp, "
     "downpour, average, bmuf, slowmo and diloco: remove it"},
    {"rule: elastic, interval: 16", "rule: none, alpha: 0.5",
     "job.yaml:6: averaging.alpha: does not apply to averaging.rule none; only to elastic: remove it"},
    {"rule: elastic", "rule: elstic",
     "job.yaml:6: averaging.rule: \"elstic\" is not known; must be one of elastic, none, sync, async, ssp, downpour, "
     "average, bmuf, slowmo, "
     "diloco (did you mean \"elastic\"?)"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {overlap: false, order: funneled}",
     "job.yaml:6: collectives.order: does not apply to collectives.overlap false; only to true: remove it"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {overlap: true, bucket_mib: 0}",
     "job.yaml:6: collectives.bucket_mib: 0 is out of range; must be a number from 0.001 to 4096"},
    {"averaging: {rule: elastic, interval: 16}", "collectives: {aggregation: root}",
     "job.yaml:6: collectives.aggregation: \"root\" is not known; must be one of allreduce, rooted, sharded (did you "
     "mean "
     "\"rooted\"?)"},
    {"model: lenet", "model: vgg",
     "job.yaml:2: model: \"vgg\" is not known; must be one of small-mlp, mlp, lenet, resnet20"},
    {"model: lenet", "", "job.yaml:1: model: is missing; must be one of small-mlp, mlp, lenet, resnet20"},
    {"test: /abs/t10k", "",
     "job.yaml:3: data.test: is missing; must be a path prefix of at most 4096 bytes, without control characters"},
    {"format: idx", "format: csv", "job.yaml:3: data.format: \"csv\" is not known; must be idx"},
    {"name: fashion", "name: Fashion",
     "job.yaml:1: name: \"Fashion\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"groups: {count: 2, ranks: 2}", "groups: 2",
     "job.yaml:5: groups: is not a map; allowed here: count, ranks, site, move_stragglers, min, max, gpus_per_rank"},
    {"learning_rate: 0.05", "learning_rate: 0",
     "job.yaml:4: train.optimizer.learning_rate: 0 is out of range; must be a number from 1e-9 to 1000"},
    {"learning_rate: 0.05", "learning_rate: .nan",
     "job.yaml:4: train.optimizer.learning_rate: \".nan\" is not a number; must be a number from 1e-9 to 1000"},
    {"learning_rate: 0.05", "learning_rate: inf",
     "job.yaml:4: train.optimizer.learning_rate: \"inf\" is not a number; must be a number from 1e-9 to 1000"},
    {"momentum: 0.9", "momentum: 1",
     "job.yaml:4: train.optimizer.momentum: 1 is out of range; must be a number from 0 to 0.999999"},
    {"momentum: 0.9", "nesterov: true",
     "job.yaml:4: train.optimizer.nesterov: needs train.optimizer.momentum above 0; set it"},
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
    {"count: 2,", "[1]: 2,",
     "job.yaml:5: groups: a key is not a text; allowed here: count, ranks, site, move_stragglers, min, max, "
     "gpus_per_rank"},
    {"groups: {count: 2, ranks: 2}", "groups: {count: 2, ranks: 2}}",
     "job.yaml:5:29: is not YAML: a ] or } closes nothing; remove it, or write the bracket that it closes"},
    {"groups:", "---\ngroups:", "job.yaml:5: a second YAML document begins; a job file describes one job"},
};

// Each kind of mistake has exactly this message: the fault, its place, and what is allowed.
TEST(JobFileMistakesTest, SaysWhatIsWrong) {
  for (const WrongFile& wrong : kWrongFiles) {
    const std::string text = absl::StrReplaceAll(kSample, {{wrong.found, wrong.replaced}});
    ASSERT_NE(text, kSample) << wrong.found;
    EXPECT_EQ(ErrorOf(text), wrong.error) << text;
  }
}

// All mistakes of a file are reported at once, in the order of the file.
TEST(JobFileMistakesTest, TellsAllMistakesAtOnce) {
  EXPECT_EQ(ErrorOf("nme: a\nmodel: mlp\ndata: {train: a, test: b}\ngroups: {count: 0}\n"),
            "job.yaml:1: nme: unknown key; allowed here: name, priority, owner, preemptible, model, data, command, "
            "environment, directory, "
            "files, "
            "sites, train, "
            "groups, averaging, collectives (did "
            "you mean "
            "\"name\"?)\n"
            "job.yaml:1: name: is missing; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter\n"
            "job.yaml:4: groups.count: 0 is out of range; must be an integer from 1 to 1024");
}

// A wrong key does not hide that other keys do not go together. A problem that is only a consequence of a wrong or
// misspelt key is not reported.
TEST(JobFileMistakesTest, TellsWhatDoesNotGoTogetherBesideOtherMistakes) {
  EXPECT_EQ(ErrorOf("name: a\nmodel: vgg\ndata: {train: a, test: b}\n"
                    "train:\n  epochs: 4\n  optimizer: {nesterov: true}\n  schedule: {warmup_epochs: 5}\n"
                    "averaging: {rule: none, interval: 16}\n"),
            "job.yaml:2: model: \"vgg\" is not known; must be one of small-mlp, mlp, lenet, resnet20\n"
            "job.yaml:6: train.optimizer.nesterov: needs train.optimizer.momentum above 0; set it\n"
            "job.yaml:7: train.schedule.warmup_epochs: 5 is not below train.epochs, which is 4; make it less, or train "
            "longer\n"
            "job.yaml:8: averaging.interval: does not apply to averaging.rule none; only to elastic, sync, async, ssp, "
            "downpour, average, bmuf, slowmo and diloco: remove it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epochs: 0, schedule: {warmup_epochs: 5}}")),
            "job.yaml:4: train.epochs: 0 is out of range; must be an integer from 1 to 100000");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epoch: 50, schedule: {warmup_epochs: 15}}")),
            "job.yaml:4: train.epoch: unknown key; allowed here: epochs, batch_size, seed, evaluate_every, "
            "state_seconds, optimizer, "
            "schedule (did you mean \"epochs\"?)");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "averaging: {rul: none, alpha: 0.5}")),
            "job.yaml:4: averaging.rul: unknown key; allowed here: rule, interval, interval_seconds, delay, fragments, "
            "post_local_epochs, servers, alpha, quorum, "
            "grace_seconds, "
            "learning_rate, "
            "momentum, nesterov, staleness_bound, staleness_power, compression, top_k (did you mean \"rule\"?)");
}

struct NonsenseFile {
  const char* found;     // A piece of kSample.
  const char* replaced;  // Replaces `found`.
  const char* error;     // Expected text after "job.yaml:".
};

constexpr NonsenseFile kNonsenseFiles[] = {
    {"train: fm/train", "train: \"     \"",
     "3: data.train: \"     \" is not a path; must be a path prefix of at most 4096 bytes, without control characters"},
    {"train: fm/train", "train: \"a\\nb\"",
     "3: data.train: \"a\\nb\" is not a path; must be a path prefix of at most 4096 bytes, without control characters"},
    {"train: fm/train", "train: \"\\e[31mred\"",
     "3: data.train: \"\\x1b[31mred\" is not a path; must be a path prefix of at most 4096 bytes, without control "
     "characters"},
    {"train: fm/train", "train: \"a\\x9b\"",
     "3: data.train: \"a\\u{9b}\" is not a path; must be a path prefix of at most 4096 bytes, without control "
     "characters"},
    {"name: fashion", "name: \"\\e[31mred\"",
     "1: name: \"\\x1b[31mred\" is not a name; must be 1 to 63 characters of a-z, 0-9 and -, the first a letter"},
    {"model: lenet", "model: \"\\e[31mred\"",
     "2: model: \"\\x1b[31mred\" is not known; must be one of small-mlp, mlp, lenet, resnet20"},
    {"count: 2", "site: \"\\uFEFF\"",
     "5: groups.site: \"\\u{feff}\" is not a site's name; must be empty, or 1 to 63 characters of A-Z, a-z, 0-9, ., _ "
     "and -"},
    {"count: 2", "\"\\e[31mred\": 2",
     "5: groups: a key has no name that can be read: \"\\x1b[31mred\"; write a name before the colon; allowed here: "
     "count, ranks, site, move_stragglers, min, max, gpus_per_rank"},
    {"count: 2", "\"\": 2",
     "5: groups: a key has no name that can be read: \"\"; write a name before the colon; allowed here: count, ranks, "
     "site, "
     "move_stragglers, min, max, gpus_per_rank"},
    {"epochs: 4", "epochs: !foo 3", "4: train.epochs: has the YAML tag \"!foo\"; a job file has no tags: remove it"},
    {"groups: {", "groups: !foo {", "5: groups: has the YAML tag \"!foo\"; a job file has no tags: remove it"},
    {"learning_rate: 0.05", "learning_rate: 1e300",
     "4: train.optimizer.learning_rate: 1e300 is out of range; must be a number from 1e-9 to 1000"},
    {"learning_rate: 0.05", "learning_rate: 1e400",
     "4: train.optimizer.learning_rate: 1e400 is out of range; must be a number from 1e-9 to 1000"},
    {"learning_rate: 0.05", "learning_rate: 1e-300",
     "4: train.optimizer.learning_rate: 1e-300 is too small: a number other than 0 is at least 1e-20; must be a number "
     "from 1e-9 to 1000"},
    {"learning_rate: 0.05", "learning_rate: 1e-40",
     "4: train.optimizer.learning_rate: 1e-40 is too small: a number other than 0 is at least 1e-20; must be a number "
     "from 1e-9 to 1000"},
    {"learning_rate: 0.05", "weight_decay: 1e300",
     "4: train.optimizer.weight_decay: 1e300 is out of range; must be a number from 0 to 10"},
    {"interval: 16", "interval_seconds: 1e300",
     "6: averaging.interval_seconds: 1e300 is out of range; must be a number from 0.001 to 86400"},
};

// Absurd files are refused with the line and what is allowed. No text of them reaches the terminal unescaped.
TEST(JobFileMistakesTest, RefusesNonsense) {
  for (const NonsenseFile& wrong : kNonsenseFiles) {
    const std::string text = absl::StrReplaceAll(kSample, {{wrong.found, wrong.replaced}});
    ASSERT_NE(text, kSample) << wrong.found;
    EXPECT_EQ(ErrorOf(text), absl::StrCat("job.yaml:", wrong.error)) << text;
  }
}

// A key with a dot in its name is not taken for a key of a section, whether or not the file has that section.
TEST(JobFileMistakesTest, ADottedNameIsAnUnknownKey) {
  const std::string error = "train.epochs: unknown key; write epochs in the section train, without the dot";
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train: {epochs: 2}\ntrain.epochs: 1\n")),
            absl::StrCat("job.yaml:5: ", error));
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train.epochs: 1\ntrain: {epochs: 2}\n")),
            absl::StrCat("job.yaml:4: ", error));
  EXPECT_EQ(
      ErrorOf(absl::StrCat(kLeast, "train: {optimizer.name: adam}\n")),
      "job.yaml:4: train.optimizer.name: unknown key; write name in the section train.optimizer, without the dot");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "train.optimizer: {name: adam}\n")),
            "job.yaml:4: train.optimizer: unknown key; write optimizer in the section train, without the dot");
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "groups: {a.b: 1}\n")),
            "job.yaml:4: groups.a.b: unknown key; allowed here: count, ranks, site, move_stragglers, min, max, "
            "gpus_per_rank");
}

// The user sees at most ten problems, and the number of further ones.
TEST(JobFileMistakesTest, TellsTenProblems) {
  std::string text = kSample;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, "unknown", i, ": 1\n");
  const std::string error = ErrorOf(text);
  EXPECT_LT(error.size(), 4096u);
  EXPECT_THAT(error, HasSubstr("job.yaml:16: unknown9: unknown key"));
  EXPECT_THAT(error, testing::EndsWith("\njob.yaml: 19990 more problems; mend these first"));
  EXPECT_LT(ErrorOf(absl::StrCat(kSample, std::string(900000, 'k'), ": 1\n")).size(), 1000u);
  EXPECT_EQ(ErrorOf(std::string((1 << 20) + 1, '#')),
            "job.yaml:1: is larger than 1 MiB, which no job file is; a job file needs at least name, model, data.train "
            "and data.test, or name and command");
}

// The coordinator's refusal is reported at the line of its key, or of the section around it.
TEST(JobFileMistakesTest, FindsTheLinesOfARefusal) {
  const absl::StatusOr<LocalJobFile> file = ParseJobFile(kSample, "job.yaml", "/jobs");
  ASSERT_TRUE(file.ok()) << file.status();
  Refusal refusal;
  refusal.problems = {
      {"averaging.quorum", "is 0", {}}, {"groups.ranks", "is 2", {}}, {"collectives.order", "is 9", {}}};
  refusal.left_out = 1;
  EXPECT_EQ(RefusalText(*file, refusal),
            "job.yaml:1: collectives.order: is 9\njob.yaml:5: groups.ranks: is 2\njob.yaml:6: averaging.quorum: is 0\n"
            "job.yaml: 1 more problem; mend these first");
}

// A mistake in a kind of groups has the kind's number.
TEST(JobFileMistakesTest, SaysWhatIsWrongWithAKind) {
  struct Case {
    const char* groups;
    const char* error;
  };
  const Case cases[] = {
      {"[]", "job.yaml:4: groups: is a list of 0; must be a map, or a list of 1 to 64 kinds of groups"},
      {"[2]",
       "job.yaml:4: groups: kind 1 is not a map; allowed here: count, ranks, site, batch_size, move_stragglers, min, "
       "max, gpus_per_rank"},
      {"\n- {ranks: 2}\n- {rank: 2}\n",
       "job.yaml:6: groups: kind 2 has the unknown key \"rank\"; allowed here: count, ranks, site, batch_size, "
       "move_stragglers, min, max, gpus_per_rank (did you mean \"ranks\"?)"},
      {"[{ranks: 0}]", "job.yaml:4: groups: kind 1: ranks: 0 is out of range; must be an integer from 1 to 16384"},
      {"[{ranks: [1]}]", "job.yaml:4: groups: kind 1: ranks: is a list; must be an integer from 1 to 16384"},
      {"[{ranks: }]", "job.yaml:4: groups: kind 1: ranks: has no value; must be an integer from 1 to 16384"},
      {"[{ranks: 1, ranks: 2}]", "job.yaml:4: groups: kind 1: ranks: is given twice; keep one"},
      {"[{site: \"a b\"}]",
       "job.yaml:4: groups: kind 1: site: \"a b\" is not a site's name; must be empty, or 1 to 63 characters of A-Z, "
       "a-z, "
       "0-9, ., _ and -"},
      {"!x [{ranks: 1}]", "job.yaml:4: groups: has the YAML tag \"!x\"; a job file has no tags: remove it"},
      {"[{count: 1000}, {count: 1000}]",
       "job.yaml:4: groups.count: 2000 is out of range; must be an integer from 1 to 1024"},
      {"[{ranks: 16000}, {ranks: 400}]",
       "job.yaml:4: groups: all groups together have 16400 ranks; must be at most 16384"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, "groups: ", c.groups, "\n")), c.error);
  const std::string command = "name: own\ncommand: [train]\ngroups: [{batch_size: 8}]\n";
  EXPECT_EQ(
      ErrorOf(command),
      "job.yaml:3: groups: kind 1: batch_size: does not go with command, which has a batch size of its own: remove "
      "it");
}

}  // namespace
}  // namespace hooke
