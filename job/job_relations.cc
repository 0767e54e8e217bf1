#include "job/job_relations.h"

#include <utility>

#include "algorithms/rule_facts.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

JobRelation Below(std::string key, std::string other, std::string remedy) {
  JobRelation relation;
  relation.key = std::move(key);
  relation.need = Need::kBelow;
  relation.other = std::move(other);
  relation.remedy = std::move(remedy);
  return relation;
}

// Returns the relation that the `values` of `key` are allowed with these rules only.
JobRelation WithRules(std::string key, std::vector<std::string> values, std::vector<std::string> rules, std::string why,
                      std::string remedy) {
  JobRelation relation;
  relation.key = std::move(key);
  relation.values = std::move(values);
  relation.need = Need::kOneOf;
  relation.other = "averaging.rule";
  relation.others = std::move(rules);
  relation.why = std::move(why);
  relation.remedy = std::move(remedy);
  return relation;
}

JobRelation NotBeside(std::string key, std::vector<std::string> values, std::string other, std::string remedy) {
  JobRelation relation;
  relation.key = std::move(key);
  relation.values = std::move(values);
  relation.need = Need::kNotGiven;
  relation.other = std::move(other);
  relation.remedy = std::move(remedy);
  return relation;
}

JobRelation NotBoth(std::string key, std::string other) {
  JobRelation relation;
  relation.key = std::move(key);
  relation.need = Need::kNotBoth;
  relation.other = std::move(other);
  relation.remedy = "keep one of them";
  return relation;
}

JobRelation Nesterov(std::string key, std::string momentum) {
  JobRelation relation;
  relation.key = std::move(key);
  relation.values = {"true"};
  relation.need = Need::kAboveZero;
  relation.other = std::move(momentum);
  relation.remedy = "set it";
  return relation;
}

JobRelation AtMost(std::string key, std::string other, std::string remedy) {
  JobRelation relation = Below(std::move(key), std::move(other), std::move(remedy));
  relation.need = Need::kAtMost;
  return relation;
}

JobRelation MostGroups() {
  JobRelation relation = Below("groups.max", "groups.count", "change one of them");
  relation.need = Need::kAtLeast;
  return relation;
}

JobRelation AllRanks(std::string groups) {
  JobRelation relation = Below("groups.ranks", std::move(groups), "lower one of them");
  relation.need = Need::kTimes;
  relation.product_max = kJobRanksMax;
  return relation;
}

JobRelation Fragments() {
  JobRelation relation = Below("averaging.fragments", "averaging.interval", "change one of them");
  relation.need = Need::kDivides;
  return relation;
}

// Answers must be applied before the next exchange begins, so the delay must be less than the steps between two
// exchanges. With interval_seconds the next exchange waits for the answers, so any delay is allowed.
JobRelation Delay() {
  JobRelation relation = Below("averaging.delay", "averaging.interval", "make it less, or the interval longer");
  relation.divided_by = "averaging.fragments";
  relation.unless = "averaging.interval_seconds";
  return relation;
}

template <typename Holds>
std::vector<std::string> RulesWhere(const Holds& holds) {
  std::vector<std::string> names;
  for (const RuleFacts& facts : AllRules()) {
    if (holds(facts.rule)) names.push_back(facts.name);
  }
  return names;
}

std::vector<JobRelation> Make() {
  const std::string longer = "make it less, or train longer";
  return {
      NotBoth("directory", "files"),
      AllRanks("groups.count"),
      AllRanks("groups.max"),
      AtMost("groups.min", "groups.count", "change one of them"),
      MostGroups(),
      Nesterov("train.optimizer.nesterov", "train.optimizer.momentum"),
      Below("train.schedule.warmup_epochs", "train.epochs", longer),
      Below("train.schedule.step_epochs", "train.epochs", longer),
      NotBeside("averaging.interval", {"auto"}, "averaging.fragments", "give a number of steps"),
      NotBeside("averaging.interval", {"auto"}, "averaging.interval_seconds", "give one of them"),
      NotBoth("averaging.interval_seconds", "averaging.interval"),
      Delay(),
      NotBeside("averaging.fragments", {}, "averaging.interval_seconds", "use averaging.interval"),
      Fragments(),
      Below("averaging.post_local_epochs", "train.epochs", longer),
      AtMost("averaging.quorum", "groups.count", "make it less, or have more groups"),
      AtMost("averaging.quorum", "groups.min", "make it less, or the other one more"),
      Nesterov("averaging.nesterov", "averaging.momentum"),
      WithRules("averaging.compression", {"top_k"}, RulesWhere(AnswersWithCenter),
                "whose groups send all their parameters", "use int8, or another rule"),
      WithRules("collectives.aggregation", {"rooted", "sharded"},
                RulesWhere([](RuleName rule) { return !SendsGradients(rule); }),
                "which needs the gradients on every rank", "use allreduce"),
  };
}

}  // namespace

const std::vector<JobRelation>& JobRelations() {
  static const auto& relations = *new std::vector<JobRelation>(Make());
  return relations;
}

}  // namespace hooke
