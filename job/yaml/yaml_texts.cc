#include "job/yaml/yaml_texts.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

absl::Status Wrong(const JobKey& key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; must be ", AllowedText(key)));
}

// Returns why the node is not a text, or "".
std::string FaultOf(const YAML::Node& node) {
  if (HasTag(node)) return TagProblem(node);
  if (node.IsNull()) return "has no value; write \"\" for an empty text";
  return node.IsScalar() ? "" : "is not a text; put it in quotes";
}

absl::StatusOr<KeyValue> ReadArguments(const JobKey& key, const YAML::Node& node) {
  if (node.IsScalar()) return Wrong(key, "is a text; write a list, like [python3, train.py]");
  if (!node.IsSequence()) return Wrong(key, "is a map");
  KeyValue value;
  for (const YAML::Node& argument : node) {
    const std::string fault = FaultOf(argument);
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("entry ", value.texts.size() + 1, " of the list ", fault));
    }
    value.texts.push_back(argument.Scalar());
  }
  return value;
}

absl::StatusOr<KeyValue> ReadVariables(const JobKey& key, const YAML::Node& node) {
  if (!node.IsMap()) return Wrong(key, node.IsSequence() ? "is a list" : "is a text; write a map, like {NAME: value}");
  KeyValue value;
  std::set<std::string> names;
  for (const auto& entry : node) {
    if (const std::string fault = FaultOf(entry.first); !fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("a name ", fault));
    }
    const std::string& name = entry.first.Scalar();
    if (const std::string fault = FaultOf(entry.second); !fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " ", fault));
    }
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is given twice; keep one"));
    }
    value.texts.push_back(absl::StrCat(name, "=", entry.second.Scalar()));
  }
  return value;
}

}  // namespace

bool HasTag(const YAML::Node& node) { return !node.Tag().empty() && node.Tag() != "?" && node.Tag() != "!"; }

std::string TagProblem(const YAML::Node& node) {
  return absl::StrCat("has the YAML tag ", Quoted(node.Tag()), "; a job file has no tags: remove it");
}

absl::StatusOr<KeyValue> ReadTexts(const JobKey& key, const YAML::Node& node) {
  absl::StatusOr<KeyValue> value =
      key.type == KeyType::kArguments ? ReadArguments(key, node) : ReadVariables(key, node);
  if (!value.ok()) return value;
  if (absl::Status status = CheckKeyValue(key, *value); !status.ok()) return status;
  return value;
}

}  // namespace hooke
