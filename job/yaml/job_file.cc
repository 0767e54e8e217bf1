#include "job/yaml/job_file.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_field.h"
#include "job/job_keys.h"
#include "job/job_relations.h"
#include "job/near_name.h"
#include "job/visible_text.h"
#include "job/yaml/file_problems.h"
#include "job/yaml/key_names.h"
#include "job/yaml/yaml_document.h"
#include "job/yaml/yaml_groups.h"
#include "job/yaml/yaml_sites.h"
#include "job/yaml/yaml_texts.h"
#include "wire/sha256.h"

namespace hooke {
namespace {

class JobFileParser {
 public:
  JobFileParser(absl::string_view file, JobFolder& folder) : file_(file), folder_(folder) {}

  absl::StatusOr<JobFile> Parse(const YAML::Node& root) {
    if (!root.IsMap()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Escaped(file_), ":", root.Mark().line + 1, ": is not a map of keys; ", kHint));
    }
    if (HasTag(root)) Add(root.Mark().line + 1, kTop, TagProblem(root));
    Collect(root, "");
    SetGivenKeys();
    SetFolderOfCommand();
    job_ = FillDefaults(std::move(job_));
    RefuseKeysThatDoNotApply();
    CrossCheck();
    if (problems_.empty()) CollectGivenFiles();
    JobFile read{std::string(file_), std::move(job_), lines_};
    for (const auto& [path, given] : given_) read.lines.emplace(path, given.line);
    if (problems_.empty()) return read;
    return absl::InvalidArgumentError(ProblemsText(file_, problems_));
  }

  static constexpr char kHint[] =
      "a job file needs at least name, model, data.train and data.test, or name and command";

 private:
  struct Given {
    YAML::Node value;
    int line;
  };
  static constexpr char kTop[] = "(top)";
  static constexpr char kGroups[] = "groups";
  static constexpr char kNoFolder[] =
      "this job comes from no folder, so write an absolute path that is right on the workers' nodes";

  void Add(int line, absl::string_view key, absl::string_view what) {
    problems_.push_back({line, absl::StrCat(key, ": ", what)});
  }

  // Visits only sections that the table of keys has, so a deep file costs no deep recursion.
  void Collect(const YAML::Node& map, const std::string& section) {
    std::map<std::string, int> seen;
    for (const auto& entry : map) {
      const int line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar() || HasTag(entry.first)) {
        Add(line, SectionText(section), absl::StrCat("a key is not a text; ", AllowedIn(section)));
        continue;
      }
      if (!IsVisibleText(entry.first.Scalar())) {
        Add(line, SectionText(section),
            absl::StrCat("a key has no name that can be read: ", Quoted(entry.first.Scalar()),
                         "; write a name before the colon; ", AllowedIn(section)));
        continue;
      }
      const std::string name = Shortened(entry.first.Scalar());
      const std::string path = KeyPath(section, name);
      const auto [first, inserted] = seen.emplace(name, line);
      if (!inserted) {
        Add(line, path, absl::StrCat("is given twice, first in line ", first->second, "; keep one"));
      } else if (absl::StrContains(name, '.')) {
        RefuseDotted(line, section, path);
      } else if (IsSection(path)) {
        lines_[path] = line;
        if (path == kGroups && entry.second.IsSequence()) {
          CollectKinds(entry.second);
          continue;
        }
        if (HasTag(entry.second)) Add(line, path, TagProblem(entry.second));
        if (entry.second.IsMap()) {
          Collect(entry.second, path);
        } else {
          wrong_.insert(path);
          Add(line, path, absl::StrCat("is not a map; ", AllowedIn(path)));
        }
      } else if (FindJobKey(path) != nullptr) {
        given_.emplace(path, Given{entry.second, line});
      } else {
        // Counts the name that was probably meant as wrong, so that the key is not checked with its default.
        wrong_.insert(KeyPath(section, Nearest(name, NamesIn(section))));
        Add(line, path, absl::StrCat("unknown key; ", AllowedIn(section), DidYouMean(section, name)));
      }
    }
  }

  // Reads `groups` as a list. As a map it is a section.
  void CollectKinds(const YAML::Node& list) {
    std::vector<LineProblem> problems = ReadGroupKinds(list, *job_.mutable_groups());
    if (problems.empty()) return;
    wrong_.insert(kGroups);
    absl::c_move(problems, std::back_inserter(problems_));
  }

  // Reports a name with a dot. Such a name would reach into a section and could contradict it.
  void RefuseDotted(int line, const std::string& section, const std::string& path) {
    wrong_.insert(path);
    const bool known = IsSection(path) || FindJobKey(path) != nullptr;
    const size_t dot = path.rfind('.');
    Add(line, path,
        absl::StrCat("unknown key; ", known ? absl::StrCat("write ", path.substr(dot + 1), " in the section ",
                                                           path.substr(0, dot), ", without the dot")
                                            : AllowedIn(section)));
  }

  static std::string SectionText(const std::string& section) { return section.empty() ? kTop : section; }

  // Cuts an unknown name, which may be as long as the file.
  static std::string Shortened(const std::string& name) {
    const std::string quoted = Quoted(name);
    return quoted.substr(1, quoted.size() - 2);
  }

  static std::string AllowedIn(const std::string& section) {
    return absl::StrCat("allowed here: ", absl::StrJoin(NamesIn(section), ", "));
  }

  void SetGivenKeys() {
    for (const JobKey& key : JobKeys()) {
      const auto given = given_.find(key.path);
      if (given != given_.end()) {
        SetGiven(key, given->second);
      } else if (key.required() && !BelongsToOtherKind(key)) {
        wrong_.insert(key.path);
        Add(LineOf(key.path), key.path, absl::StrCat("is missing; must be ", AllowedText(key)));
      }
    }
  }

  // Whether the key applies only to jobs without a command, and the file has one, be it right, wrong or misspelt.
  bool BelongsToOtherKind(const JobKey& key) const {
    if (!DependsOnCommand(key)) return false;
    const std::string command = ConditionOf(key).key;
    return given_.count(command) > 0 || wrong_.count(command) > 0;
  }

  // Reads the files that the job sends. Until then its FileSet only says that there are some.
  void CollectGivenFiles() {
    if (file_paths_.empty()) return;
    const JobKey& key = *FindJobKey("files");
    absl::StatusOr<v1::FileSet> files = folder_.Collect(file_paths_);
    if (!files.ok()) return Add(LineOf(key.path), key.path, files.status().message());
    *job_.mutable_command()->mutable_files() = *std::move(files);
  }

  // Sets a key whose field is a message.
  absl::Status SetMessage(const JobKey& key, const YAML::Node& value) {
    if (key.type == KeyType::kSites) return ReadSites(key, value, job_);
    absl::StatusOr<std::vector<std::string>> paths = ReadFilePaths(key, value);
    if (!paths.ok()) return paths.status();
    file_paths_ = *std::move(paths);
    v1::FileSet& set = *job_.mutable_command()->mutable_files();
    set.set_manifest_sha256(Sha256Of(""));
    set.set_manifest_bytes(1);
    return absl::OkStatus();
  }

  // A job with a command that names neither a folder nor files runs in the folder of its job file.
  void SetFolderOfCommand() {
    const JobKey& key = *FindJobKey("directory");
    if (!Applies(key, job_) || given_.count(key.path) > 0 || given_.count("files") > 0) return;
    if (folder_.path().empty()) {
      wrong_.insert(key.path);
      Add(LineOf("command"), key.path, absl::StrCat("is missing; ", kNoFolder));
      return;
    }
    KeyValue value;
    value.text = std::filesystem::path(folder_.path()).lexically_normal();
    SetField(key, value, job_);
  }

  void SetGiven(const JobKey& key, const Given& given) {
    wrong_.insert(key.path);  // The key stays in wrong_ until it has passed all checks.
    if (HasTag(given.value)) return Add(given.line, key.path, TagProblem(given.value));
    if (given.value.IsNull())
      return Add(given.line, key.path, absl::StrCat("has no value; must be ", AllowedText(key)));
    if (IsMessage(key)) {
      const absl::Status status = SetMessage(key, given.value);
      if (!status.ok()) return Add(given.line, key.path, status.message());
      wrong_.erase(key.path);
      return;
    }
    if (HasTexts(key)) {
      const absl::StatusOr<KeyValue> texts = ReadTexts(key, given.value);
      if (!texts.ok()) return Add(given.line, key.path, texts.status().message());
      SetField(key, *texts, job_);
      wrong_.erase(key.path);
      return;
    }
    if (!given.value.IsScalar()) {
      return Add(given.line, key.path,
                 absl::StrCat("is a ", given.value.IsMap() ? "map" : "list", "; must be ", AllowedText(key)));
    }
    absl::StatusOr<KeyValue> value = ParseKeyValue(key, given.value.Scalar(), given.value.Tag() == "!");
    if (!value.ok()) {
      const std::string guess = key.type == KeyType::kChoice ? Nearest(given.value.Scalar(), key.choices) : "";
      return Add(given.line, key.path,
                 absl::StrCat(value.status().message(),
                              guess.empty() ? "" : absl::StrCat(" (did you mean \"", guess, "\"?)")));
    }
    if (key.type == KeyType::kPath || key.type == KeyType::kFolder || key.type == KeyType::kJsonFile) {
      if (folder_.path().empty() && value->text[0] != '/') {
        return Add(given.line, key.path, absl::StrCat(Quoted(value->text), " is a relative path; ", kNoFolder));
      }
      value->text = (std::filesystem::path(folder_.path()) / value->text).lexically_normal();
      if (const absl::Status whole = CheckKeyValue(key, *value); !whole.ok()) {
        return Add(given.line, key.path, whole.message());
      }
    }
    if (key.type == KeyType::kJsonFile) {
      absl::StatusOr<std::string> text = folder_.ReadJson(value->text);
      if (!text.ok()) {
        return Add(given.line, key.path, absl::StrCat(text.status().message(), "; must be ", AllowedText(key)));
      }
      value->text = *std::move(text);
    }
    SetField(key, *value, job_);
    wrong_.erase(key.path);
  }

  // True if `job_` has the file's value of a key: neither the key nor a section around it has a problem.
  bool IsRight(absl::string_view path) const {
    for (size_t end = path.size(); end != absl::string_view::npos; end = path.rfind('.', end - 1)) {
      if (wrong_.count(std::string(path.substr(0, end))) > 0) return false;
    }
    return true;
  }

  int LineOf(const std::string& path) const {
    const auto found = given_.find(path);
    return found == given_.end() ? LineOfKey(lines_, path) : found->second.line;
  }

  void RefuseKeysThatDoNotApply() {
    for (const JobKey& key : JobKeys()) {
      if (key.only_with.empty() || given_.count(key.path) == 0) continue;
      const Condition condition = ConditionOf(key);
      if (!IsRight(condition.key) || Applies(key, job_)) continue;
      const std::string actual = GetField(*FindJobKey(condition.key), job_).text;
      Add(LineOf(key.path), key.path, absl::StrCat(DoesNotApplyText(condition, actual), ": remove it"));
      does_not_apply_.insert(key.path);
    }
  }

  // Makes the coordinator's checks. It leaves out problems that are only consequences of those already reported.
  void CrossCheck() {
    for (const JobRelation& relation : JobRelations()) {
      const bool both = given_.count(relation.key) > 0 && given_.count(relation.other) > 0;
      if (relation.need != Need::kNotBoth || !both) continue;
      Add(LineOf(relation.key), relation.key, absl::StrCat("is given beside ", relation.other, "; ", relation.remedy));
      wrong_.insert(relation.key);
    }
    wrong_.insert(does_not_apply_.begin(), does_not_apply_.end());
    for (const JobProblem& problem : CheckJob(job_)) {
      if (!absl::c_all_of(problem.about, [this](const std::string& path) { return IsRight(path); })) continue;
      // A default that follows from a wrong key is not a fault of its own.
      if (given_.count(problem.key) == 0 && !problems_.empty()) continue;
      Add(LineOf(problem.key), problem.key, problem.message);
    }
  }

  const std::string file_;
  JobFolder& folder_;
  std::map<std::string, int> lines_;    // Line of each section in the file.
  std::map<std::string, Given> given_;  // Keys in the file.
  std::set<std::string> wrong_;         // Keys and sections with a problem.
  std::set<std::string> does_not_apply_;
  std::vector<LineProblem> problems_;
  v1::JobSpec job_;
  std::vector<std::string> file_paths_;  // Of the key `files`.
};

}  // namespace

absl::StatusOr<JobFile> ParseJobText(absl::string_view text, absl::string_view file, JobFolder& folder) {
  const std::string name = Escaped(file);
  if (text.size() > kJobFileBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":1: is larger than 1 MiB, which no job file is; ", JobFileParser::kHint));
  }
  const absl::StatusOr<YAML::Node> document = LoadYamlDocument(text, name);
  if (!document.ok()) return document.status();
  if (document->IsNull()) return absl::InvalidArgumentError(absl::StrCat(name, ":1: is empty; ", JobFileParser::kHint));
  return JobFileParser(file, folder).Parse(*document);
}

std::string RefusalText(const JobFile& file, const Refusal& refusal) {
  std::vector<LineProblem> problems;
  for (const JobProblem& problem : refusal.problems) {
    problems.push_back({LineOfKey(file.lines, problem.key), absl::StrCat(problem.key, ": ", problem.message)});
  }
  return ProblemsText(file.name, std::move(problems), refusal.left_out);
}

}  // namespace hooke
