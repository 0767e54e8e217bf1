#include "job/job_tables.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "job/job_check.h"
#include "job/job_keys.h"
#include "job/job_relations.h"

namespace hooke {
namespace {

constexpr char kRuleKey[] = "averaging.rule";

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string Begin(const std::vector<std::string>& headings) {
  std::string begin = absl::StrCat(Row(headings), "|");
  for (size_t i = 0; i < headings.size(); ++i) absl::StrAppend(&begin, "---|");
  return begin + "\n";
}

std::string Code(const std::string& text) { return absl::StrCat("`", text, "`"); }

std::string DefaultOf(const JobKey& key) {
  return key.preset.has_value() && !key.preset->empty() ? Code(*key.preset) : key.default_text;
}

std::string ConditionText(const JobKey& key) {
  if (key.only_with.empty()) return "";
  if (!DependsOnCommand(key)) {
    return absl::StrCat(" Only with ", Code(absl::StrJoin(absl::StrSplit(key.only_with, '='), ": ")), ".");
  }
  const Condition condition = ConditionOf(key);
  return absl::StrCat(condition.need == Condition::Need::kGiven ? " Only with " : " Only without ", Code(condition.key),
                      ".");
}

std::string KeyTable() {
  std::string table = Begin({"key", "default", "allowed", "meaning"});
  for (const JobKey& key : JobKeys()) {
    absl::StrAppend(&table, Row({Code(key.path), DefaultOf(key), AllowedText(key), key.meaning + ConditionText(key)}));
  }
  return table;
}

std::string RuleRow(const std::string& what, const std::vector<std::string>& with) {
  std::vector<std::string> cells = {what};
  for (const std::string& rule : FindJobKey(kRuleKey)->choices) {
    cells.push_back(absl::c_linear_search(with, rule) ? "yes" : "-");
  }
  return Row(cells);
}

// Returns one row for the choices of a key that all rules allow, and one row for each relation that limits other
// choices to some rules.
std::string ChoiceRows(const JobKey& key) {
  std::vector<std::string> free = key.choices;
  std::string rows;
  for (const JobRelation& relation : JobRelations()) {
    if (relation.key != key.path || relation.other != kRuleKey) continue;
    for (const std::string& value : relation.values) free.erase(absl::c_find(free, value));
    absl::StrAppend(&rows,
                    RuleRow(Code(absl::StrCat(key.path, ": ", absl::StrJoin(relation.values, ", "))), relation.others));
  }
  return RuleRow(Code(absl::StrCat(key.path, ": ", absl::StrJoin(free, ", "))), FindJobKey(kRuleKey)->choices) + rows;
}

// Returns the table that shows which rule allows which keys and choices.
std::string RuleTable() {
  std::vector<std::string> headings = {"with `averaging.rule`"};
  for (const std::string& rule : FindJobKey(kRuleKey)->choices) headings.push_back(rule);
  std::string table = Begin(headings);
  for (const JobKey& key : JobKeys()) {
    const bool choice = absl::c_any_of(JobRelations(), [&](const JobRelation& relation) {
      return relation.key == key.path && relation.other == kRuleKey;
    });
    if (choice || key.path == "train.optimizer.name") absl::StrAppend(&table, ChoiceRows(key));
    if (key.only_with.empty() || ConditionOf(key).key != kRuleKey) continue;
    absl::StrAppend(&table, RuleRow(Code(key.path), ConditionOf(key).values));
  }
  return table;
}

std::string NeedText(const JobRelation& relation) {
  const std::string other = Code(relation.other);
  switch (relation.need) {
    case Need::kOneOf:
      return absl::StrCat(other, " is one of ", absl::StrJoin(relation.others, ", "));
    case Need::kNotGiven: {
      const double unused = *FindJobKey(relation.other)->unused;
      return absl::StrCat(other, " is not given", unused > 0 ? absl::StrCat(", or ", unused) : "");
    }
    case Need::kNotBoth:
      return absl::StrCat(other, " is not given");
    case Need::kAboveZero:
      return absl::StrCat(other, " is above 0");
    case Need::kBelow:
      return absl::StrCat("it is below ", other, relation.divided_by.empty() ? "" : " / ",
                          relation.divided_by.empty() ? "" : Code(relation.divided_by));
    case Need::kAtMost:
      return absl::StrCat("it is at most ", other);
    case Need::kAtLeast:
      return absl::StrCat("it is at least ", other);
    case Need::kDivides:
      return absl::StrCat("it divides ", other);
    case Need::kTimes:
      return absl::StrCat("times ", other, " it is at most ", relation.product_max);
  }
  return "";
}

std::string ValuesText(const JobRelation& relation) {
  if (!relation.values.empty()) return absl::StrJoin(relation.values, ", ");
  const JobKey& key = *FindJobKey(relation.key);
  return key.unused.has_value() ? absl::StrCat("above ", *key.unused) : "any";
}

std::string RelationTable() {
  std::string table = Begin({"key", "value", "is taken where", "but not looked at with"});
  for (const JobRelation& relation : JobRelations()) {
    absl::StrAppend(&table, Row({Code(relation.key), ValuesText(relation), NeedText(relation),
                                 relation.unless.empty() ? "-" : Code(relation.unless)}));
  }
  return table;
}

}  // namespace

std::vector<std::string> JobTables() { return {KeyTable(), RuleTable(), RelationTable()}; }

std::string WithJobTables(const std::string& page) {
  std::string written;
  bool replaced = false;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    replaced = replaced && absl::StartsWith(line, "|");
    if (replaced) continue;
    for (const std::string& table : JobTables()) {
      if (line.empty() || line != table.substr(0, table.find('\n'))) continue;
      absl::StrAppend(&written, table);
      replaced = true;
    }
    if (!replaced) absl::StrAppend(&written, line, "\n");
  }
  written.pop_back();  // Drops the empty line that splitting leaves after the last newline.
  return written;
}

}  // namespace hooke
