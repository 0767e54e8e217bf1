#include "client/job_keys.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using Set = void (*)(const KeyValue&, v1::JobSpec&);

// Integers up to here are exact in a double, and in every JSON reader.
constexpr double kLargestInteger = 9007199254740991;

constexpr char kRequired[] = "required";

KeyRange AtLeast(double min) { return {min, true, std::nullopt, true}; }
KeyRange Above(double min) { return {min, false, std::nullopt, true}; }
KeyRange FromTo(double min, double max) { return {min, true, max, true}; }
KeyRange FromToBelow(double min, double max) { return {min, true, max, false}; }
KeyRange Between(double min, double max) { return {min, false, max, false}; }
KeyRange AboveUpTo(double min, double max) { return {min, false, max, true}; }

// `preset` is the default, or `required`, or a text in parentheses that says how it follows from other keys.
JobKey Make(KeyType type, std::string path, absl::string_view preset, std::string meaning, Set set) {
  JobKey key;
  key.path = std::move(path);
  key.type = type;
  key.meaning = std::move(meaning);
  key.set = set;
  const bool follows = !preset.empty() && preset.front() == '(';
  if (follows) key.default_text = std::string(preset.substr(1, preset.size() - 2));
  if (preset == kRequired) key.default_text = kRequired;
  if (!key.default_text.empty()) return key;
  key.preset = std::string(preset);
  key.default_text = preset.empty() ? "empty" : std::string(preset);
  return key;
}

JobKey Text(KeyType type, std::string path, absl::string_view preset, std::string meaning, Set set) {
  return Make(type, std::move(path), preset, std::move(meaning), set);
}

JobKey Choice(std::string path, std::vector<std::string> choices, absl::string_view preset, std::string meaning,
              Set set) {
  JobKey key = Make(KeyType::kChoice, std::move(path), preset, std::move(meaning), set);
  key.choices = std::move(choices);
  return key;
}

JobKey Integer(std::string path, KeyRange range, absl::string_view preset, std::string meaning, Set set) {
  JobKey key = Make(KeyType::kInteger, std::move(path), preset, std::move(meaning), set);
  key.range = range;
  return key;
}

JobKey OrWord(std::string word, JobKey key) {
  key.choices.push_back(std::move(word));
  return key;
}

JobKey Number(std::string path, KeyRange range, absl::string_view preset, std::string meaning, Set set) {
  JobKey key = Make(KeyType::kNumber, std::move(path), preset, std::move(meaning), set);
  key.range = range;
  return key;
}

JobKey Boolean(std::string path, absl::string_view preset, std::string meaning, Set set) {
  return Make(KeyType::kBoolean, std::move(path), preset, std::move(meaning), set);
}

JobKey OnlyWith(std::string condition, JobKey key) {
  key.only_with = std::move(condition);
  return key;
}

// The enum value of a choice: its name in upper case, with the enum's prefix.
template <typename Enum>
Enum ParseChoice(bool (*parse)(const std::string&, Enum*), absl::string_view prefix, const KeyValue& value) {
  Enum result = {};
  parse(absl::StrCat(prefix, absl::AsciiStrToUpper(value.text)), &result);
  return result;
}

template <typename Enum>
bool Parse(const std::string& name, Enum* value);
template <>
bool Parse(const std::string& name, v1::DataSpec::Format* value) {
  return v1::DataSpec::Format_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::OptimizerSpec::Name* value) {
  return v1::OptimizerSpec::Name_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::ScheduleSpec::Name* value) {
  return v1::ScheduleSpec::Name_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::AveragingSpec::Rule* value) {
  return v1::AveragingSpec::Rule_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::AveragingSpec::Compression* value) {
  return v1::AveragingSpec::Compression_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::CollectivesSpec::Aggregation* value) {
  return v1::CollectivesSpec::Aggregation_Parse(name, value);
}
template <>
bool Parse(const std::string& name, v1::CollectivesSpec::Order* value) {
  return v1::CollectivesSpec::Order_Parse(name, value);
}

v1::OptimizerSpec& Optimizer(v1::JobSpec& job) { return *job.mutable_train()->mutable_optimizer(); }
v1::ScheduleSpec& Schedule(v1::JobSpec& job) { return *job.mutable_train()->mutable_schedule(); }

std::vector<JobKey> JobAndDataKeys() {
  return {
      Text(KeyType::kName, "name", kRequired, "Name of the job; its id is the name and a number.",
           [](const KeyValue& v, v1::JobSpec& job) { job.set_name(v.text); }),
      Choice("model", {"mlp", "lenet", "resnet20"}, kRequired, "The network to train, built in.",
             [](const KeyValue& v, v1::JobSpec& job) { job.mutable_model()->set_name(v.text); }),
      Choice("data.format", {"idx"}, "idx", "Format of the data files: MNIST's IDX, plain or gzip.",
             [](const KeyValue& v, v1::JobSpec& job) {
               job.mutable_data()->set_format(
                   ParseChoice<v1::DataSpec::Format>(Parse<v1::DataSpec::Format>, "FORMAT_", v));
             }),
      Text(KeyType::kPath, "data.train", kRequired,
           "Prefix of the training files: `<prefix>-images-idx3-ubyte` and `<prefix>-labels-idx1-ubyte`, or the same "
           "with `.gz`.",
           [](const KeyValue& v, v1::JobSpec& job) { job.mutable_data()->set_train(v.text); }),
      Text(KeyType::kPath, "data.test", kRequired, "Prefix of the test files, named alike.",
           [](const KeyValue& v, v1::JobSpec& job) { job.mutable_data()->set_test(v.text); }),
  };
}

std::vector<JobKey> TrainKeys() {
  return {
      Integer("train.epochs", FromTo(1, 100000), "10", "Passes over the training data, by all groups together.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_train()->set_epochs(v.integer); }),
      Integer("train.batch_size", FromTo(1, 65536), "64", "Samples of each rank in each step.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_train()->set_batch_size(v.integer); }),
      Integer("train.seed", FromTo(0, kLargestInteger), "1", "Seed of the initial parameters and of the shuffling.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_train()->set_seed(v.integer); }),
      Integer("train.evaluate_every", FromTo(0, 100000), "1",
              "Epochs between two evaluations of the center while training; 0: only at the end.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_train()->set_evaluate_every(v.integer); }),
  };
}

std::vector<JobKey> OptimizerKeys() {
  const std::string sgd = "train.optimizer.name=sgd";
  const std::string adam = "train.optimizer.name=adam,adamw";
  return {
      Choice("train.optimizer.name", {"sgd", "adam", "adamw"}, "sgd", "How a group's parameters follow its gradients.",
             [](const KeyValue& v, v1::JobSpec& job) {
               Optimizer(job).set_name(ParseChoice<v1::OptimizerSpec::Name>(Parse<v1::OptimizerSpec::Name>, "", v));
             }),
      Number("train.optimizer.learning_rate", Above(0), "(0.05 for sgd, 0.001 for adam and adamw)",
             "Learning rate, before the schedule.",
             [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_learning_rate(v.number); }),
      OnlyWith(sgd, Number("train.optimizer.momentum", FromToBelow(0, 1), "0", "Momentum.",
                           [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_momentum(v.number); })),
      OnlyWith(sgd, Boolean("train.optimizer.nesterov", "false", "Nesterov's momentum; needs `momentum` above 0.",
                            [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_nesterov(v.boolean); })),
      Number("train.optimizer.weight_decay", AtLeast(0), "(0 for sgd and adam, 0.01 for adamw)",
             "Weight decay: L2 for sgd and adam, decoupled for adamw.",
             [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_weight_decay(v.number); }),
      OnlyWith(adam, Number("train.optimizer.beta1", FromToBelow(0, 1), "0.9", "Decay of the first moment.",
                            [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_beta1(v.number); })),
      OnlyWith(adam, Number("train.optimizer.beta2", FromToBelow(0, 1), "0.999", "Decay of the second moment.",
                            [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_beta2(v.number); })),
      OnlyWith(adam, Number("train.optimizer.epsilon", Above(0), "1e-8", "Added to the denominator.",
                            [](const KeyValue& v, v1::JobSpec& job) { Optimizer(job).set_epsilon(v.number); })),
  };
}

std::vector<JobKey> ScheduleKeys() {
  const std::string step = "train.schedule.name=step";
  return {
      Choice("train.schedule.name", {"constant", "step", "cosine"}, "constant", "How the learning rate changes.",
             [](const KeyValue& v, v1::JobSpec& job) {
               Schedule(job).set_name(ParseChoice<v1::ScheduleSpec::Name>(Parse<v1::ScheduleSpec::Name>, "", v));
             }),
      Number("train.schedule.warmup_epochs", AtLeast(0), "0",
             "The learning rate first grows from 0 over so many epochs; below `train.epochs`.",
             [](const KeyValue& v, v1::JobSpec& job) { Schedule(job).set_warmup_epochs(v.number); }),
      OnlyWith(step, Number("train.schedule.step_epochs", Above(0), "(a third of train.epochs)",
                            "Epochs between two drops; below `train.epochs`.",
                            [](const KeyValue& v, v1::JobSpec& job) { Schedule(job).set_step_epochs(v.number); })),
      OnlyWith(step, Number("train.schedule.step_factor", AboveUpTo(0, 1), "0.1", "Factor of each drop.",
                            [](const KeyValue& v, v1::JobSpec& job) { Schedule(job).set_step_factor(v.number); })),
      OnlyWith(
          "train.schedule.name=cosine",
          Number("train.schedule.final_fraction", FromTo(0, 1), "0", "Learning rate at the end, relative to the start.",
                 [](const KeyValue& v, v1::JobSpec& job) { Schedule(job).set_final_fraction(v.number); })),
  };
}

std::vector<JobKey> GroupsKeys() {
  return {
      Integer("groups.count", FromTo(1, 1024), "1", "Groups; whether they wait for one another, `averaging.rule` says.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_groups()->set_count(v.integer); }),
      Integer("groups.ranks", FromTo(1, 1024), "1", "Ranks of each group; all of a group run at one site.",
              [](const KeyValue& v, v1::JobSpec& job) { job.mutable_groups()->set_ranks(v.integer); }),
      Text(KeyType::kText, "groups.site", "", "Run only at this site; empty: at any.",
           [](const KeyValue& v, v1::JobSpec& job) { job.mutable_groups()->set_site(v.text); }),
  };
}

// What groups do, and when.
std::vector<JobKey> RuleKeys() {
  return {
      Choice("averaging.rule",
             {"elastic", "none", "sync", "async", "ssp", "downpour", "average", "bmuf", "slowmo", "diloco"}, "elastic",
             "What groups send, how the center follows, and what becomes of the groups: [rules](rules/README.md).",
             [](const KeyValue& v, v1::JobSpec& job) {
               job.mutable_averaging()->set_rule(
                   ParseChoice<v1::AveragingSpec::Rule>(Parse<v1::AveragingSpec::Rule>, "", v));
             }),
      OnlyWith(
          "averaging.rule=elastic,sync,async,ssp,downpour,average,bmuf,slowmo,diloco",
          OrWord("auto",
                 Integer("averaging.interval", FromTo(1, 1000000), "(16; 1 for sync, async and ssp, 64 for diloco)",
                         "Steps between two exchanges of a group. `auto`: the default, and a slower group makes fewer.",
                         [](const KeyValue& v, v1::JobSpec& job) {
                           job.mutable_averaging()->set_interval(v.integer);
                           job.mutable_averaging()->set_interval_auto(v.text == "auto");
                         }))),
      OnlyWith(
          "averaging.rule=elastic,sync,async,ssp,downpour,average,bmuf,slowmo,diloco",
          Number("averaging.interval_seconds", Above(0), "(none)",
                 "Instead of `interval`: a group exchanges when so many seconds have passed, so a slow one takes "
                 "fewer steps.",
                 [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_interval_seconds(v.number); })),
      OnlyWith(
          "averaging.rule=elastic,sync,async,ssp,downpour,average,bmuf,slowmo,diloco",
          Integer("averaging.delay", FromTo(0, 1000000), "0",
                  "Steps that a group makes between sending and applying the answer, while it is on its way; below "
                  "`interval`.",
                  [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_delay(v.integer); })),
      OnlyWith(
          "averaging.rule=elastic,average,bmuf,slowmo,diloco",
          Integer("averaging.fragments", FromTo(1, 64), "1",
                  "Parts of the vector that are exchanged one after another, each once in an `interval`, which is a "
                  "multiple of it: the network is busy longer and with less.",
                  [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_fragments(v.integer); })),
      OnlyWith("averaging.rule=average",
               Integer("averaging.post_local_epochs", FromTo(0, 100000), "0",
                       "Groups first exchange after each step, for so many epochs; below `train.epochs`.",
                       [](const KeyValue& v, v1::JobSpec& job) {
                         job.mutable_averaging()->set_post_local_epochs(v.integer);
                       })),
  };
}

std::vector<JobKey> AveragingKeys() {
  const std::string rounds = "averaging.rule=sync,average,bmuf,slowmo,diloco";
  const std::string waits = rounds + ",ssp";
  const std::string outer = "averaging.rule=bmuf,slowmo,diloco";
  return {
      Integer(
          "averaging.servers", FromTo(0, 65536), "0",
          "Servers that share the center, those that hold the least so far; the job waits until so many have joined. "
          "0: all that have when its first group starts.",
          [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_servers(v.integer); }),
      OnlyWith("averaging.rule=elastic",
               Number("averaging.alpha", Between(0, 1), "(min(0.9/p, 1/(p+1)) for p groups)",
                      "Strength of the pull: the part of the difference that each exchange moves both.",
                      [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_alpha(v.number); })),
      OnlyWith(rounds,
               Integer("averaging.quorum", FromTo(1, 1024), "1",
                       "A round goes on without the others when so many groups have sent and `grace_seconds` have "
                       "passed; at most `groups.count`.",
                       [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_quorum(v.integer); })),
      OnlyWith(waits, Number("averaging.grace_seconds", FromTo(0, 10), "5", "How long groups wait for a slower one.",
                             [](const KeyValue& v, v1::JobSpec& job) {
                               job.mutable_averaging()->set_grace_seconds(v.number);
                             })),
      OnlyWith(outer, Number("averaging.learning_rate", Above(0), "(1; 0.7 for diloco)",
                             "How far the center goes of the groups' mean way.",
                             [](const KeyValue& v, v1::JobSpec& job) {
                               job.mutable_averaging()->set_learning_rate(v.number);
                             })),
      OnlyWith(outer,
               Number("averaging.momentum", FromToBelow(0, 1),
                      "(1 - 1/p for bmuf with p groups, 0.7 for slowmo, 0.9 for diloco)", "Momentum of the center.",
                      [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_momentum(v.number); })),
      OnlyWith("averaging.rule=bmuf",
               Boolean("averaging.nesterov", "false", "Nesterov's momentum; needs `momentum` above 0.",
                       [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_nesterov(v.boolean); })),
      OnlyWith("averaging.rule=ssp",
               Integer("averaging.staleness_bound", FromTo(1, 1000000), "(4 x averaging.interval)",
                       "By how many steps a group may be ahead of the slowest.",
                       [](const KeyValue& v, v1::JobSpec& job) {
                         job.mutable_averaging()->set_staleness_bound(v.integer);
                       })),
      OnlyWith(
          "averaging.rule=async,ssp,downpour",
          Number("averaging.staleness_power", FromTo(0, 4), "0",
                 "A contribution that s others came before since its group's last one counts by 1 / (1 + s) to "
                 "this power.",
                 [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_staleness_power(v.number); })),
  };
}

std::vector<JobKey> CompressionKeys() {
  return {
      Choice("averaging.compression", {"none", "float16", "bfloat16", "int8", "int4", "top_k"}, "none",
             "How exchanges are encoded in fewer bytes: [compression](compression.md).",
             [](const KeyValue& v, v1::JobSpec& job) {
               job.mutable_averaging()->set_compression(ParseChoice<v1::AveragingSpec::Compression>(
                   Parse<v1::AveragingSpec::Compression>, "COMPRESSION_", v));
             }),
      OnlyWith("averaging.compression=top_k",
               Number("averaging.top_k", AboveUpTo(0, 1), "0.01", "The part of the values that a group sends.",
                      [](const KeyValue& v, v1::JobSpec& job) { job.mutable_averaging()->set_top_k(v.number); })),
  };
}

std::vector<JobKey> CollectivesKeys() {
  const std::string overlap = "collectives.overlap=true";
  return {
      Choice(
          "collectives.aggregation", {"allreduce", "rooted", "sharded"}, "allreduce",
          "`allreduce`: every rank gets the mean gradient and steps. `rooted`: rank 0 alone does, then broadcasts the "
          "parameters. `sharded`: each rank gets and steps its part, then all gather the parameters.",
          [](const KeyValue& v, v1::JobSpec& job) {
            job.mutable_collectives()->set_aggregation(
                ParseChoice<v1::CollectivesSpec::Aggregation>(Parse<v1::CollectivesSpec::Aggregation>, "", v));
          }),
      Boolean(
          "collectives.overlap", "true",
          "Gradients travel in buckets while backward goes on, and the parameters of `rooted` and `sharded` beside the "
          "next forward pass; `false`: all at once, between two passes.",
          [](const KeyValue& v, v1::JobSpec& job) { job.mutable_collectives()->set_overlap(v.boolean); }),
      OnlyWith(
          overlap,
          Choice("collectives.order", {"funneled", "concurrent", "chained"}, "funneled",
                 "Who starts the collectives of buckets: one thread, several each with a communicator of its own, or "
                 "whoever completes the next bucket.",
                 [](const KeyValue& v, v1::JobSpec& job) {
                   job.mutable_collectives()->set_order(
                       ParseChoice<v1::CollectivesSpec::Order>(Parse<v1::CollectivesSpec::Order>, "", v));
                 })),
      OnlyWith(
          overlap,
          Number("collectives.bucket_mib", AboveUpTo(0, 4096), "4",
                 "A bucket closes when it holds so many MiB. The last one leaves after backward: of a smaller model "
                 "that is all.",
                 [](const KeyValue& v, v1::JobSpec& job) { job.mutable_collectives()->set_bucket_mib(v.number); })),
      Text(KeyType::kJsonFile, "collectives.tuning", "(none)",
           "How algorithms are chosen on this cluster: a file that `hooke bench tune` wrote. It is sent with the job.",
           [](const KeyValue& v, v1::JobSpec& job) { job.mutable_collectives()->set_tuning(v.text); }),
  };
}

}  // namespace

const std::vector<JobKey>& JobKeys() {
  static const std::vector<JobKey>& keys = *[] {
    auto* all = new std::vector<JobKey>;
    for (auto part : {JobAndDataKeys, TrainKeys, OptimizerKeys, ScheduleKeys, GroupsKeys, RuleKeys, AveragingKeys,
                      CompressionKeys, CollectivesKeys}) {
      for (JobKey& key : part()) all->push_back(std::move(key));
    }
    return all;
  }();
  return keys;
}

const JobKey* FindJobKey(absl::string_view path) {
  const auto found = absl::c_find_if(JobKeys(), [path](const JobKey& key) { return key.path == path; });
  return found == JobKeys().end() ? nullptr : &*found;
}

}  // namespace hooke
