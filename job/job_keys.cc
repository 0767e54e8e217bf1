#include "job/job_keys.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/center_rule.h"
#include "algorithms/rule_facts.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

// All integers up to this one, 2^53 - 1, are exact in a double and in every JSON reader.
constexpr double kLargestInteger = 9007199254740991;

constexpr double kEpochsMax = 100000;
constexpr double kIntervalMax = 1000000;

// The largest value allowed below 1. It stays below 1 as a float32, which the optimizer computes with.
constexpr double kBelowOne = 0.999999;

constexpr char kRequired[] = "required";
constexpr char kCommand[] = "command";
constexpr char kNoCommand[] = "!command";

KeyRange FromTo(double min, double max) { return {min, max}; }

// Makes a key. `preset` is the default, "required", or a text in parentheses that tells how the default follows from
// other keys.
JobKey Make(KeyType type, std::string path, absl::string_view preset, std::string meaning) {
  JobKey key;
  key.field = path;
  key.path = std::move(path);
  key.type = type;
  key.meaning = std::move(meaning);
  const bool follows = !preset.empty() && preset.front() == '(';
  if (follows) key.default_text = std::string(preset.substr(1, preset.size() - 2));
  if (preset == kRequired) key.default_text = kRequired;
  if (!key.default_text.empty()) return key;
  key.preset = std::string(preset);
  key.default_text = preset.empty() ? "empty" : std::string(preset);
  return key;
}

JobKey Text(KeyType type, std::string path, absl::string_view preset, std::string meaning) {
  return Make(type, std::move(path), preset, std::move(meaning));
}

JobKey Choice(std::string path, std::vector<std::string> choices, absl::string_view preset, std::string meaning) {
  JobKey key = Make(KeyType::kChoice, std::move(path), preset, std::move(meaning));
  key.choices = std::move(choices);
  return key;
}

JobKey Integer(std::string path, KeyRange range, absl::string_view preset, std::string meaning) {
  JobKey key = Make(KeyType::kInteger, std::move(path), preset, std::move(meaning));
  key.range = range;
  return key;
}

JobKey OrWord(std::string word, JobKey key) {
  key.choices.push_back(std::move(word));
  return key;
}

JobKey Number(std::string path, KeyRange range, absl::string_view preset, std::string meaning) {
  JobKey key = Make(KeyType::kNumber, std::move(path), preset, std::move(meaning));
  key.range = range;
  return key;
}

JobKey Boolean(std::string path, absl::string_view preset, std::string meaning) {
  return Make(KeyType::kBoolean, std::move(path), preset, std::move(meaning));
}

// Sets JobKey::unused: values from 0 to `value` mean that the job does not use the key.
JobKey Unused(double value, JobKey key) {
  key.unused = value;
  return key;
}

JobKey InField(std::string field, JobKey key) {
  key.field = std::move(field);
  return key;
}

// Returns an `only_with` that holds if the job's rule is one for which `holds` returns true.
template <typename Holds>
std::string RuleWhere(const Holds& holds) {
  std::vector<std::string> names;
  for (const RuleFacts& facts : AllRules()) {
    if (holds(facts)) names.push_back(facts.name);
  }
  return absl::StrCat("averaging.rule=", absl::StrJoin(names, ","));
}

// Returns how a default follows from the rule, in parentheses: "(16; 1 for sync, 64 for diloco)". `text` gives the
// default of a rule. Only rules that have the key, those for which `holds` returns true, are named. The default of the
// most rules comes first, without their names.
template <typename Holds, typename Text>
std::string DefaultByRule(const Holds& holds, const Text& text) {
  std::vector<std::pair<std::string, std::vector<std::string>>> defaults;
  for (const RuleFacts& facts : AllRules()) {
    if (!holds(facts)) continue;
    const std::string value = text(facts.defaults);
    auto found = absl::c_find_if(defaults, [&value](const auto& one) { return one.first == value; });
    if (found == defaults.end()) found = defaults.insert(found, {value, {}});
    found->second.push_back(facts.name);
  }
  const auto most =
      absl::c_max_element(defaults, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::string usual = most->first;
  std::vector<std::string> others;
  for (const auto& [value, rules] : defaults) {
    if (value != usual) others.push_back(absl::StrCat(value, " for ", ListText(rules)));
  }
  return absl::StrCat("(", usual, others.empty() ? "" : "; ", absl::StrJoin(others, ", "), ")");
}

JobKey OnlyWith(std::string condition, JobKey key) {
  key.only_with = std::move(condition);
  return key;
}

std::vector<JobKey> JobAndDataKeys() {
  return {
      Text(KeyType::kName, "name", kRequired, "Name of the job; its id is the name and a number."),
      Integer("priority", FromTo(0, 100), "0",
              "Of the jobs that wait, those with a higher one come first: [the queue](daemons.md#the-queue)."),
      Text(KeyType::kOwner, "owner", "(the user that runs `hooke submit`)",
           "For whom the job runs: of jobs with one priority, those of the owner who has used the cluster the least "
           "come "
           "first, and an owner may have a [quota](daemons.md#owners). A name only, which proves nothing."),
      Boolean(
          "preemptible", "(true without a command, false with one)",
          "Whether its groups [leave](daemons.md#preemption) if a job of higher priority needs their slots. They go on "
          "later, and a built-in network repeats no step."),
      OnlyWith(kNoCommand, InField("model.name", Choice("model", {"small-mlp", "mlp", "lenet", "resnet20"}, kRequired,
                                                        "The network to train, built in."))),
      OnlyWith(kNoCommand,
               Choice("data.format", {"idx"}, "idx", "Format of the data files: MNIST's IDX, plain or gzip.")),
      OnlyWith(kNoCommand, Text(KeyType::kPath, "data.train", kRequired,
                                "Prefix of the training files: `<prefix>-images-idx3-ubyte` and "
                                "`<prefix>-labels-idx1-ubyte`, or the same with `.gz`.")),
      OnlyWith(kNoCommand, Text(KeyType::kPath, "data.test", kRequired, "Prefix of the test files, named alike.")),
  };
}

std::vector<JobKey> CommandKeys() {
  return {
      InField("command.arguments",
              Text(KeyType::kArguments, kCommand, "(none)",
                   "Instead of a built-in network: the program that each rank is, and its arguments: "
                   "[commands](commands.md).")),
      OnlyWith(kCommand, InField("command.environment",
                                 Text(KeyType::kEnvironment, "environment", "(none)",
                                      "Variables that are added to the environment of the command's worker."))),
      OnlyWith(kCommand, InField("command.directory",
                                 Text(KeyType::kFolder, "directory", "(the folder of the job file, without `files`)",
                                      "Folder in which the command runs, on the nodes of the workers."))),
      OnlyWith(kCommand, InField("command.files", Text(KeyType::kFiles, "files", "(none)",
                                                       "Files and folders with all that they hold, which each group "
                                                       "gets a copy of: [files](commands.md#files)."))),
      InField("command.sites", Text(KeyType::kSites, "sites", "(none)",
                                    "By a site's name: the Python and the variables of a [command "
                                    "there](commands.md#sites), and what its batch jobs ask of "
                                    "[Slurm](deploy.md#a-site-in-slurm).")),
  };
}

std::vector<JobKey> TrainKeys() {
  return {
      Integer("train.epochs", FromTo(1, kEpochsMax), "10", "Passes over the training data, by all groups together."),
      OnlyWith(kNoCommand, Integer("train.batch_size", FromTo(1, 65536), "64", "Samples of each rank in each step.")),
      Integer("train.seed", FromTo(0, kLargestInteger), "1", "Seed of the initial parameters and of the shuffling."),
      OnlyWith(kNoCommand, Integer("train.evaluate_every", FromTo(0, kEpochsMax), "1",
                                   "Epochs between two evaluations of the center while training; 0: only at the "
                                   "end.")),
      Number("train.state_seconds", FromTo(0, 86400), "30",
             "Seconds from one state of a group's own, kept for its restart, to the next; more if keeping takes long. "
             "0: none is kept."),
  };
}

std::vector<JobKey> OptimizerKeys() {
  const std::string sgd = "train.optimizer.name=sgd";
  const std::string adam = "train.optimizer.name=adam,adamw";
  return {
      Choice("train.optimizer.name", {"sgd", "adam", "adamw"}, "sgd", "How a group's parameters follow its gradients."),
      Number("train.optimizer.learning_rate", FromTo(1e-9, 1000), "(0.05 for sgd, 0.001 for adam and adamw)",
             "Learning rate, before the schedule."),
      OnlyWith(sgd, Number("train.optimizer.momentum", FromTo(0, kBelowOne), "0", "Momentum.")),
      OnlyWith(sgd, Boolean("train.optimizer.nesterov", "false", "Nesterov's momentum; needs `momentum` above 0.")),
      Number("train.optimizer.weight_decay", FromTo(0, 10), "(0 for sgd and adam, 0.01 for adamw)",
             "Weight decay: L2 for sgd and adam, decoupled for adamw."),
      OnlyWith(adam, Number("train.optimizer.beta1", FromTo(0, kBelowOne), "0.9", "Decay of the first moment.")),
      OnlyWith(adam, Number("train.optimizer.beta2", FromTo(0, kBelowOne), "0.999", "Decay of the second moment.")),
      OnlyWith(adam, Number("train.optimizer.epsilon", FromTo(kSmallest, 1), "1e-8", "Added to the denominator.")),
  };
}

std::vector<JobKey> ScheduleKeys() {
  const std::string step = "train.schedule.name=step";
  return {
      Choice("train.schedule.name", {"constant", "step", "cosine"}, "constant", "How the learning rate changes."),
      Number("train.schedule.warmup_epochs", FromTo(0, kEpochsMax), "0",
             "The learning rate first grows from 0 over so many epochs; below `train.epochs`."),
      OnlyWith(step, Number("train.schedule.step_epochs", FromTo(0.001, kEpochsMax), "(a third of train.epochs)",
                            "Epochs between two drops; below `train.epochs`.")),
      OnlyWith(step, Number("train.schedule.step_factor", FromTo(1e-6, 1), "0.1", "Factor of each drop.")),
      OnlyWith("train.schedule.name=cosine", Number("train.schedule.final_fraction", FromTo(0, 1), "0",
                                                    "Learning rate at the end, relative to the start.")),
  };
}

std::vector<JobKey> GroupsKeys() {
  const std::string sharing = RuleWhere([](const RuleFacts& facts) { return facts.shares; });
  return {
      Integer("groups.count", FromTo(1, 1024), "1",
              "Groups; whether they wait for one another, `averaging.rule` says."),
      Integer("groups.ranks", FromTo(1, kJobRanksMax), "1",
              absl::StrCat(
                  "Ranks of each group, on one worker or on several of one site. All groups together have at most ",
                  kJobRanksMax, ".")),
      Text(KeyType::kSite, "groups.site", "", "Run only at this site; empty: at any."),
      Boolean(
          "groups.move_stragglers", "false",
          "Whether a group that is slower than the others [leaves](daemons.md#stragglers) for workers that are free."),
      OnlyWith(
          sharing,
          Unused(0, Integer(
                        "groups.min", FromTo(1, 1024), "(none)",
                        "If room goes, the job goes on with [fewer groups](changing-groups.md#with-"
                        "the-room), but not with fewer than these; at most `count`. With `max` alone it is `count`."))),
      OnlyWith(sharing, Unused(0, Integer("groups.max", FromTo(1, 1024), "(none)",
                                          "If there is more room, the job goes on with [more "
                                          "groups](changing-groups.md#with-the-room), but not with more than these; at "
                                          "least `count`. With `min` alone it is `count`."))),
      OnlyWith(kCommand, Unused(0, Integer("groups.gpus_per_rank", FromTo(1, 64), "(none)",
                                           "Run only on workers with so many [GPUs](daemons.md#gpus) for each slot, "
                                           "and show each rank so many."))),
  };
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const RuleFacts& facts : AllRules()) names.push_back(facts.name);
  return names;
}

// Returns the keys of the averaging rule and of the times of exchanges.
std::vector<JobKey> RuleKeys() {
  const auto shares = [](const RuleFacts& facts) { return facts.shares; };
  const std::string all_but_none = RuleWhere(shares);
  const std::string of_values =
      RuleWhere([](const RuleFacts& facts) { return facts.shares && facts.sends != RuleSends::kGradients; });
  return {
      Choice("averaging.rule", RuleNames(), "elastic",
             "What groups send, how the center follows, and what becomes of the groups: [rules](rules/README.md)."),
      OnlyWith(
          all_but_none,
          OrWord(
              "auto",
              Integer("averaging.interval", FromTo(1, kIntervalMax),
                      DefaultByRule(shares, [](const RuleDefaults& by) { return absl::StrCat(by.interval); }),
                      "Steps between two exchanges of a group. `auto`: the default, and a slower group makes fewer."))),
      OnlyWith(
          all_but_none,
          Unused(
              0,
              Number("averaging.interval_seconds", FromTo(0.001, 86400), "(none)",
                     "Instead of `interval`: a group exchanges when so many seconds have passed, so a slow one takes "
                     "fewer steps."))),
      OnlyWith(
          all_but_none,
          Unused(
              0,
              Integer("averaging.delay", FromTo(0, kIntervalMax), "0",
                      "Steps that a group makes between sending and applying the answer, while it is on its way; below "
                      "`interval`."))),
      OnlyWith(
          of_values,
          Unused(1,
                 Integer(
                     "averaging.fragments", FromTo(1, 64), "1",
                     "Parts of the vector that are exchanged one after another, each once in an `interval`, which is a "
                     "multiple of it: the network is busy longer and with less."))),
      OnlyWith(RuleWhere([](const RuleFacts& facts) { return CenterIsMean(facts.rule); }),
               Unused(0, Integer("averaging.post_local_epochs", FromTo(0, kEpochsMax), "0",
                                 "Groups first exchange after each step, for so many epochs; below `train.epochs`."))),
  };
}

std::string MomentumText(const RuleDefaults& by) {
  return by.momentum == kMomentumByGroups ? "1 - 1/p for p groups" : absl::StrCat(by.momentum);
}

std::vector<JobKey> AveragingKeys() {
  const std::string rounds = RuleWhere([](const RuleFacts& facts) { return facts.pace == RulePace::kInRounds; });
  const std::string waits = RuleWhere([](const RuleFacts& facts) { return WaitsForOthers(facts.rule); });
  const auto has_momentum = [](const RuleFacts& facts) { return facts.has_momentum; };
  const std::string outer = RuleWhere(has_momentum);
  const std::string pulls =
      RuleWhere([](const RuleFacts& facts) { return facts.shares && facts.sends == RuleSends::kParameters; });
  const std::string nesterov = RuleWhere([](const RuleFacts& facts) { return facts.nesterov == RuleNesterov::kByJob; });
  const std::string bounded = RuleWhere([](const RuleFacts& facts) { return facts.pace == RulePace::kBounded; });
  const std::string stale = RuleWhere(
      [](const RuleFacts& facts) { return facts.sends == RuleSends::kGradients && facts.pace != RulePace::kInRounds; });
  return {
      Integer(
          "averaging.servers", FromTo(0, 65536), "0",
          "Servers that share the center, those that hold the least so far; the job waits until so many have joined. "
          "0: all that have when its first group starts."),
      OnlyWith(pulls, Number("averaging.alpha", FromTo(1e-6, kBelowOne), "(min(0.9/p, 1/(p+1)) for p groups)",
                             "Strength of the pull: the part of the difference that each exchange moves both.")),
      OnlyWith(
          rounds,
          Unused(0, Integer("averaging.quorum", FromTo(1, 1024), "(all groups that live)",
                            "A round goes on without the others when so many groups have sent and `grace_seconds` "
                            "have passed; at most `groups.count`. Without this key it waits for every group from the "
                            "first round on; one that is `grace_seconds` late is missed until it sends again."))),
      OnlyWith(waits, Number("averaging.grace_seconds", FromTo(0, 10), "5", "How long groups wait for a slower one.")),
      OnlyWith(outer, Number("averaging.learning_rate", FromTo(1e-6, 100),
                             DefaultByRule(has_momentum,
                                           [](const RuleDefaults& by) { return absl::StrCat(by.learning_rate); }),
                             "How far the center goes of the groups' mean way.")),
      OnlyWith(outer, Number("averaging.momentum", FromTo(0, kBelowOne), DefaultByRule(has_momentum, MomentumText),
                             "Momentum of the center.")),
      OnlyWith(nesterov, Boolean("averaging.nesterov", "false", "Nesterov's momentum; needs `momentum` above 0.")),
      OnlyWith(bounded, Integer("averaging.staleness_bound", FromTo(1, 4 * kIntervalMax), "(4 x averaging.interval)",
                                "By how many steps a group may be ahead of the slowest.")),
      OnlyWith(stale,
               Number("averaging.staleness_power", FromTo(0, kStalenessPowerMax), "0",
                      "A contribution that s others came before since its group's last one counts by 1 / (1 + s) to "
                      "this power.")),
  };
}

std::vector<JobKey> CompressionKeys() {
  return {
      Unused(0, Choice("averaging.compression", {"none", "float16", "bfloat16", "int8", "int4", "top_k"}, "none",
                       "How exchanges are encoded in fewer bytes: [compression](compression.md).")),
      OnlyWith(
          "averaging.compression=top_k",
          Number("averaging.top_k", FromTo(1e-6, 1), "0.1",
                 "The part of the values that a group sends. With less, [short jobs lose](compression.md#top_k).")),
  };
}

std::vector<JobKey> CollectivesKeys() {
  const std::string overlap = "collectives.overlap=true";
  return {
      Choice(
          "collectives.aggregation", {"allreduce", "rooted", "sharded"}, "allreduce",
          "`allreduce`: every rank gets the mean gradient and steps. `rooted`: rank 0 alone does, then broadcasts the "
          "parameters. `sharded`: each rank gets and steps its part, then all gather the parameters."),
      Boolean(
          "collectives.overlap", "true",
          "Gradients travel in buckets while backward goes on, and the parameters of `rooted` and `sharded` beside the "
          "next forward pass; `false`: all at once, between two passes."),
      OnlyWith(
          overlap,
          Choice("collectives.order", {"funneled", "concurrent", "chained"}, "funneled",
                 "Who starts the collectives of buckets: one thread, several each with a communicator of its own, or "
                 "whoever completes the next bucket.")),
      OnlyWith(
          overlap,
          Number("collectives.bucket_mib", FromTo(0.001, 4096), "4",
                 "A bucket closes when it holds so many MiB. The last one leaves after backward: of a smaller model "
                 "that is all.")),
      Unused(0, Number("collectives.timeout_seconds", FromTo(1, 86400), "(the workers' `--collective-timeout`)",
                       "How long ranks wait for one that does not come to a collective. Then their group ends, and is "
                       "started again.")),
      Text(KeyType::kJsonFile, "collectives.tuning", "(none)",
           "How algorithms are chosen on this cluster: a file that `hooke bench tune` wrote. It is sent with the job."),
  };
}

}  // namespace

const std::vector<JobKey>& JobKeys() {
  static const std::vector<JobKey>& keys = *[] {
    auto* all = new std::vector<JobKey>;
    for (auto part : {JobAndDataKeys, CommandKeys, TrainKeys, OptimizerKeys, ScheduleKeys, GroupsKeys, RuleKeys,
                      AveragingKeys, CompressionKeys, CollectivesKeys}) {
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
