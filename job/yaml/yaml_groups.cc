#include "job/yaml/yaml_groups.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "job/group_kinds.h"
#include "job/job_keys.h"
#include "job/near_name.h"
#include "job/visible_text.h"
#include "job/yaml/yaml_texts.h"

namespace hooke {
namespace {

// The keys of a kind. Each comes with the path of the job's key by whose type and range its value is checked.
const std::vector<std::pair<std::string, std::string>>& KindKeys() {
  static const auto& keys =
      *new std::vector<std::pair<std::string, std::string>>{{"count", "groups.count"},
                                                            {"ranks", "groups.ranks"},
                                                            {"site", "groups.site"},
                                                            {"batch_size", "train.batch_size"},
                                                            {"move_stragglers", "groups.move_stragglers"},
                                                            {"min", "groups.min"},
                                                            {"max", "groups.max"},
                                                            {"gpus_per_rank", "groups.gpus_per_rank"}};
  return keys;
}

class KindReader {
 public:
  KindReader(int number, std::vector<LineProblem>& problems) : number_(number), problems_(problems) {}

  v1::GroupKind Read(const YAML::Node& node) {
    v1::GroupKind kind;
    if (!node.IsMap() || HasTag(node)) {
      Add(node, "", absl::StrCat("is not a map; ", AllowedHere()));
      return kind;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() || HasTag(entry.first)) {
        Add(entry.first, "", absl::StrCat("has a key that is not a text; ", AllowedHere()));
        continue;
      }
      const std::string& name = entry.first.Scalar();
      const JobKey* const key = KeyOf(name);
      if (key == nullptr) {
        const std::string guess = Nearest(name, Names());
        Add(entry.first, "",
            absl::StrCat("has the unknown key ", Quoted(name), "; ", AllowedHere(),
                         guess.empty() ? "" : absl::StrCat(" (did you mean \"", guess, "\"?)")));
      } else if (!seen.insert(name).second) {
        Add(entry.first, name, "is given twice; keep one");
      } else {
        Set(name, *key, entry.second, kind);
      }
    }
    return kind;
  }

 private:
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, path] : KindKeys()) names.push_back(name);
    return names;
  }

  static std::string AllowedHere() { return absl::StrCat("allowed here: ", absl::StrJoin(Names(), ", ")); }

  static const JobKey* KeyOf(absl::string_view name) {
    for (const auto& [own, path] : KindKeys()) {
      if (own == name) return FindJobKey(path);
    }
    return nullptr;
  }

  void Set(const std::string& name, const JobKey& key, const YAML::Node& node, v1::GroupKind& kind) {
    if (HasTag(node)) return Add(node, name, TagProblem(node));
    if (!node.IsScalar()) {
      return Add(node, name,
                 absl::StrCat(node.IsNull()  ? "has no value"
                              : node.IsMap() ? "is a map"
                                             : "is a list",
                              "; must be ", AllowedText(key)));
    }
    const absl::StatusOr<KeyValue> value = ParseKeyValue(key, node.Scalar(), node.Tag() == "!");
    if (!value.ok()) return Add(node, name, value.status().message());
    const auto number = static_cast<uint32_t>(value->integer);
    if (name == "count") kind.set_count(number);
    if (name == "ranks") kind.set_ranks(number);
    if (name == "site") kind.set_site(value->text);
    if (name == "batch_size") kind.set_batch_size(number);
    if (name == "move_stragglers") kind.set_move_stragglers(value->boolean);
    if (name == "min") kind.set_min(number);
    if (name == "max") kind.set_max(number);
    if (name == "gpus_per_rank") kind.set_gpus_per_rank(number);
  }

  void Add(const YAML::Node& where, absl::string_view key, absl::string_view what) {
    problems_.push_back({where.Mark().line + 1, absl::StrCat("groups: kind ", number_, key.empty() ? "" : ": ", key,
                                                             key.empty() ? " " : ": ", what)});
  }

  const int number_;  // Counted from 1.
  std::vector<LineProblem>& problems_;
};

}  // namespace

std::vector<LineProblem> ReadGroupKinds(const YAML::Node& list, v1::GroupsSpec& groups) {
  const int line = list.Mark().line + 1;
  if (HasTag(list)) return {{line, absl::StrCat("groups: ", TagProblem(list))}};
  if (list.size() == 0 || list.size() > kKindsMax) {
    return {{line, absl::StrCat("groups: is a list of ", list.size(), "; must be a map, or a list of 1 to ", kKindsMax,
                                " kinds of groups")}};
  }
  std::vector<LineProblem> problems;
  for (const YAML::Node& node : list) {
    *groups.add_kinds() = KindReader(groups.kinds_size() + 1, problems).Read(node);
  }
  return problems;
}

}  // namespace hooke
