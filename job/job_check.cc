#include "job/job_check.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "job/file_manifest.h"
#include "job/group_kinds.h"
#include "job/job_defaults.h"
#include "job/job_field.h"
#include "job/site_command.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

double NumberOf(const JobKey& key, const v1::JobSpec& job) {
  const KeyValue value = GetField(key, job);
  return key.type == KeyType::kInteger ? static_cast<double>(value.integer) : value.number;
}

// False if the key's value means that the job does not use it (JobKey::unused). NaN and negative numbers count as used,
// so that the range check refuses them.
bool Uses(const JobKey& key, const v1::JobSpec& job) {
  if (!key.unused.has_value() || key.type == KeyType::kChoice) return true;
  const double number = NumberOf(key, job);
  return !(number >= 0 && number <= *key.unused);
}

// Checks a key whose field is a message.
absl::Status CheckMessage(const JobKey& key, const v1::JobSpec& job) {
  absl::Status status = key.type == KeyType::kFiles ? CheckFileSet(job.command().files()) : CheckSites(job);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(status.message(), "; must be ", AllowedText(key)));
}

std::optional<JobProblem> CheckValue(const JobKey& key, const v1::JobSpec& job) {
  if (!Uses(key, job)) return std::nullopt;
  const bool may_be_absent = key.type == KeyType::kArguments || IsMessage(key);
  if (may_be_absent && !IsGiven(key, job)) return std::nullopt;
  if (DependsOnCommand(key) && !Applies(key, job)) {
    if (!IsGiven(key, job)) return std::nullopt;
    const Condition condition = ConditionOf(key);
    return JobProblem{
        key.path, absl::StrCat(DoesNotApplyText(condition, ""), ": remove it"), {key.path, condition.key}};
  }
  KeyValue value = GetField(key, job);
  if (key.type == KeyType::kFolder && job.command().has_files()) {
    if (value.text.empty()) return std::nullopt;
    return JobProblem{
        key.path, "does not go with files, in whose folder the command then runs: remove it", {key.path, "files"}};
  }
  if (!Applies(key, job) && key.type != KeyType::kChoice) {
    if (!key.unused.has_value()) return std::nullopt;
    const Condition condition = ConditionOf(key);
    const std::string actual = GetField(*FindJobKey(condition.key), job).text;
    return JobProblem{key.path,
                      absl::StrCat(value.text, " ", DoesNotApplyText(condition, Escaped(actual))),
                      {key.path, condition.key}};
  }
  absl::Status status = IsMessage(key) ? CheckMessage(key, job) : CheckKeyValue(key, value);
  const bool is_path = key.type == KeyType::kPath || key.type == KeyType::kFolder;
  if (is_path && status.ok() && value.text[0] != '/') {
    status = absl::InvalidArgumentError(absl::StrCat(Quoted(value.text), " is not an absolute path"));
  }
  if (key.type == KeyType::kJsonFile) {  // In a JobSpec the value is the file's content.
    status =
        value.text.size() <= kJsonBytesMax
            ? absl::OkStatus()
            : absl::InvalidArgumentError(absl::StrCat("has ", value.text.size(), " bytes; must be ", AllowedText(key)));
  }
  // A key whose value is a word such as "auto" also has an integer in the JobSpec, from which the automatic choice
  // starts. The integer must be in range, too.
  if (key.type == KeyType::kInteger && status.ok()) {
    value.text = absl::StrCat(value.integer);
    status = CheckKeyValue(key, value);
  }
  if (!status.ok()) return JobProblem{key.path, std::string(status.message()), {key.path}};
  // A job with a built-in network may set a site's key `slurm`, but not the site's other keys.
  const JobKey& command = *FindJobKey("command");
  if (key.type == KeyType::kSites && !job.command().sites().empty() && !IsGiven(command, job)) {
    return JobProblem{key.path,
                      absl::StrCat("only slurm means anything without ", command.path, ": remove the other keys"),
                      {key.path, command.path}};
  }
  return std::nullopt;
}

std::string Remedied(absl::string_view what, const JobRelation& relation) {
  return absl::StrCat(what, "; ", relation.remedy);
}

// Returns the problem that `key` has with this relation, or "". The relation must apply to the job's value of `key`.
std::string CheckNeed(const JobRelation& relation, const JobKey& key, const v1::JobSpec& job) {
  const JobKey& other = *FindJobKey(relation.other);
  const std::string text = GetField(key, job).text;
  const std::string beside = absl::StrCat(relation.other, ", which is ", GetField(other, job).text);
  switch (relation.need) {
    case Need::kOneOf:
      if (absl::c_linear_search(relation.others, GetField(other, job).text)) return "";
      return Remedied(
          absl::StrCat(text, " does not apply to ", relation.other, " ", GetField(other, job).text, ", ", relation.why),
          relation);
    case Need::kNotGiven:
      if (!Uses(other, job)) return "";
      return Remedied(
          absl::StrCat(relation.values.empty() ? "" : absl::StrCat(text, " "), "does not go with ", relation.other),
          relation);
    case Need::kNotBoth:
      return "";
    case Need::kAboveZero:
      return NumberOf(other, job) > 0 ? "" : Remedied(absl::StrCat("needs ", relation.other, " above 0"), relation);
    case Need::kAtMost:
      return !Uses(other, job) || NumberOf(key, job) <= NumberOf(other, job)
                 ? ""
                 : Remedied(absl::StrCat(text, " is more than ", beside), relation);
    case Need::kAtLeast:
      return NumberOf(key, job) >= NumberOf(other, job)
                 ? ""
                 : Remedied(absl::StrCat(text, " is less than ", beside), relation);
    case Need::kDivides:
      if (std::fmod(NumberOf(other, job), NumberOf(key, job)) == 0) return "";
      return Remedied(absl::StrCat(beside, ", is not a multiple of ", text), relation);
    case Need::kTimes:
      if (NumberOf(key, job) * NumberOf(other, job) <= relation.product_max) return "";
      return Remedied(absl::StrCat(text, " times ", beside, ", is more than ", relation.product_max), relation);
    case Need::kBelow:
      break;
  }
  const JobKey* divisor = relation.divided_by.empty() ? nullptr : FindJobKey(relation.divided_by);
  const bool divided = divisor != nullptr && Uses(*divisor, job);
  const double bound = divided ? std::floor(NumberOf(other, job) / NumberOf(*divisor, job)) : NumberOf(other, job);
  if (NumberOf(key, job) < bound) return "";
  return Remedied(absl::StrCat(text, " is not below ", relation.other,
                               divided ? absl::StrCat(" / ", divisor->path) : "", ", which is ", bound),
                  relation);
}

// Finds a site for which the job asks something of Slurm although no group of the job runs there.
std::optional<JobProblem> CheckSlurmSites(const v1::JobSpec& job) {
  const std::vector<v1::GroupKind> kinds = KindsOf(job);
  for (const auto& [site, slurm] : job.slurm()) {
    if (absl::c_any_of(kinds, [&site = site](const v1::GroupKind& kind) { return kind.site() == site; })) continue;
    return JobProblem{
        "sites",
        absl::StrCat("no group is at site ", site, ", so nothing would be asked of Slurm: set groups.site: ", site),
        {"sites", "groups", "groups.site"}};
  }
  return std::nullopt;
}

std::optional<JobProblem> CheckRelation(const JobRelation& relation, const v1::JobSpec& job) {
  const JobKey& key = *FindJobKey(relation.key);
  if (!Uses(key, job) || !Applies(key, job)) return std::nullopt;
  if (!relation.values.empty() && !absl::c_linear_search(relation.values, GetField(key, job).text)) return std::nullopt;
  // CheckKinds adds up the ranks of groups that are not alike.
  if (relation.need == Need::kTimes && HasKinds(job)) return std::nullopt;
  if (!relation.unless.empty() && Uses(*FindJobKey(relation.unless), job)) return std::nullopt;
  const std::string what = CheckNeed(relation, key, job);
  if (what.empty()) return std::nullopt;
  JobProblem problem{relation.key, what, {relation.key, relation.other}};
  for (const std::string& more : {relation.divided_by, relation.unless}) {
    if (!more.empty()) problem.about.push_back(more);
  }
  if (!key.only_with.empty()) problem.about.push_back(ConditionOf(key).key);
  return problem;
}

// Returns the job with as many groups of each kind as `limit` says.
v1::JobSpec AtLimit(const v1::JobSpec& job, uint32_t (v1::GroupKind::*limit)() const) {
  v1::GroupsSpec groups = job.groups();
  uint32_t count = 0;
  int i = 0;
  for (const v1::GroupKind& kind : KindsOf(job)) {
    const uint32_t of_kind = HasLimits(kind) ? (kind.*limit)() : kind.count();
    if (HasKinds(job)) groups.mutable_kinds(i++)->set_count(of_kind);
    count += of_kind;
  }
  groups.set_count(count);
  return WithGroups(job, groups);
}

// Checks the job with the fewest and with the most groups that it may get. Values that follow from the number of groups
// may go together only for some numbers.
std::vector<JobProblem> CheckLimits(const v1::JobSpec& job) {
  if (!absl::c_any_of(KindsOf(job), HasLimits)) return {};
  for (const bool fewest : {true, false}) {
    const v1::JobSpec at_limit = AtLimit(job, fewest ? &v1::GroupKind::min : &v1::GroupKind::max);
    for (const JobRelation& relation : JobRelations()) {
      std::optional<JobProblem> problem = CheckRelation(relation, at_limit);
      if (!problem.has_value()) continue;
      const uint32_t count = at_limit.groups().count();
      problem->message = absl::StrCat(problem->message, "; the job may get ", fewest ? "as few as " : "as many as ",
                                      count, count == 1 ? " group" : " groups", ", by the keys min and max of groups");
      return {*std::move(problem)};
    }
  }
  return {};
}

}  // namespace

Condition ConditionOf(const JobKey& key) {
  const std::pair<std::string, std::string> condition = absl::StrSplit(key.only_with, '=');
  if (!condition.second.empty()) {
    return {condition.first, Condition::Need::kOneOf, absl::StrSplit(condition.second, ',')};
  }
  absl::string_view other = condition.first;
  const bool negated = absl::ConsumePrefix(&other, "!");
  return {std::string(other), negated ? Condition::Need::kNotGiven : Condition::Need::kGiven, {}};
}

bool DependsOnCommand(const JobKey& key) {
  return !key.only_with.empty() && ConditionOf(key).need != Condition::Need::kOneOf;
}

std::string DoesNotApplyText(const Condition& condition, absl::string_view actual) {
  if (condition.need == Condition::Need::kGiven) return absl::StrCat("means nothing without ", condition.key);
  if (condition.need == Condition::Need::kNotGiven) {
    return absl::StrCat("does not go with ", condition.key, ", which brings its own model and data");
  }
  return absl::StrCat("does not apply to ", condition.key, " ", actual, "; only to ", ListText(condition.values));
}

bool Applies(const JobKey& key, const v1::JobSpec& job) {
  if (key.only_with.empty()) return true;
  const Condition condition = ConditionOf(key);
  const JobKey& other = *FindJobKey(condition.key);
  if (condition.need != Condition::Need::kOneOf) {
    return IsGiven(other, job) == (condition.need == Condition::Need::kGiven);
  }
  return absl::c_linear_search(condition.values, GetField(other, job).text);
}

std::vector<JobProblem> CheckJob(const v1::JobSpec& job) {
  std::vector<JobProblem> problems;
  std::set<std::string> wrong;
  const auto add = [&](std::optional<JobProblem> problem) {
    if (!problem.has_value()) return;
    // Skip a problem that is only a consequence of an earlier one.
    if (absl::c_any_of(problem->about, [&](const std::string& key) { return wrong.count(key) > 0; })) return;
    wrong.insert(problem->key);
    problems.push_back(*std::move(problem));
  };
  for (const JobKey& key : JobKeys()) add(CheckValue(key, job));
  for (JobProblem& problem : CheckKinds(job)) add(std::move(problem));
  for (const JobRelation& relation : JobRelations()) add(CheckRelation(relation, job));
  add(CheckSlurmSites(job));
  return problems.empty() ? CheckLimits(job) : problems;
}

}  // namespace hooke
