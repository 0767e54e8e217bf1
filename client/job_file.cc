#include "client/job_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/job_keys.h"

namespace hooke {
namespace {

constexpr size_t kBytesMax = 1 << 20;
constexpr size_t kTuningBytesMax = 64 << 10;  // As the coordinator has it.

std::string Join(absl::string_view section, absl::string_view name) {
  return section.empty() ? std::string(name) : absl::StrCat(section, ".", name);
}

bool IsSection(absl::string_view path) {
  return absl::c_any_of(JobKeys(),
                        [path](const JobKey& key) { return absl::StartsWith(key.path, absl::StrCat(path, ".")); });
}

// The names allowed directly in a section, keys and sections, in documented order.
std::vector<std::string> NamesIn(absl::string_view section) {
  std::vector<std::string> names;
  for (const JobKey& key : JobKeys()) {
    absl::string_view rest = key.path;
    if (!section.empty() && !absl::ConsumePrefix(&rest, absl::StrCat(section, "."))) continue;
    std::string name(rest.substr(0, rest.find('.')));
    if (!absl::c_linear_search(names, name)) names.push_back(std::move(name));
  }
  return names;
}

// Levenshtein's distance: single characters added, removed or replaced.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The nearest of `names`, or "" when none is near.
std::string Nearest(absl::string_view wrong, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;
  std::string nearest;
  size_t best = std::min<size_t>(3, wrong.size() / 2 + 1);
  if (wrong.size() > kLongest) return nearest;
  for (const std::string& name : names) {
    const size_t distance = Distance(wrong, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

// A near name of the same section; else a key of exactly that name elsewhere.
std::string DidYouMean(absl::string_view section, absl::string_view name) {
  std::string guess = Nearest(name, NamesIn(section));
  for (const JobKey& key : JobKeys()) {
    if (guess.empty() && absl::EndsWith(absl::StrCat(".", key.path), absl::StrCat(".", name))) guess = key.path;
  }
  return guess.empty() ? "" : absl::StrCat(" (did you mean \"", guess, "\"?)");
}

// A file's first bytes, one more than `bytes_max` of a longer one.
absl::StatusOr<std::string> ReadStart(const std::string& path, size_t bytes_max) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::FailedPreconditionError(absl::StrCat("cannot be read: ", std::strerror(errno)));
  std::string text(bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return absl::FailedPreconditionError("cannot be read");
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<std::string> ReadJsonFile(const std::string& path) {
  absl::StatusOr<std::string> text = std::filesystem::is_directory(path) ? absl::FailedPreconditionError("is a folder")
                                                                         : ReadStart(path, kTuningBytesMax);
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat(path, " ", text.status().message()));
  if (text->size() > kTuningBytesMax) return absl::InvalidArgumentError(absl::StrCat(path, " is larger than 64 KiB"));
  if (!nlohmann::json::accept(*text)) return absl::InvalidArgumentError(absl::StrCat(path, " is not JSON"));
  return text;
}

class JobFileParser {
 public:
  JobFileParser(absl::string_view file, absl::string_view folder) : file_(file), folder_(folder) {}

  absl::StatusOr<v1::JobSpec> Parse(const YAML::Node& root) {
    if (!root.IsMap())
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ":", root.Mark().line + 1, ": is not a map of keys; ", kHint));
    Collect(root, "");
    SetAll();
    RefuseKeysThatDoNotApply();
    FillDependentDefaults();
    CrossCheck();
    absl::c_stable_sort(problems_, [](const Problem& a, const Problem& b) { return a.line < b.line; });
    if (problems_.empty()) return job_;
    return absl::InvalidArgumentError(
        absl::StrJoin(problems_, "\n", [](std::string* out, const Problem& problem) { out->append(problem.text); }));
  }

  static constexpr char kHint[] = "a job file needs at least name, model, data.train and data.test";

 private:
  struct Given {
    YAML::Node value;
    int line;
  };
  struct Problem {
    int line;
    std::string text;
  };

  void Add(int line, absl::string_view key, absl::string_view what) {
    problems_.push_back({line, absl::StrCat(file_, ":", line, ": ", key, ": ", what)});
  }

  // Walks the sections that the table knows, so the depth of the file does not matter.
  void Collect(const YAML::Node& map, const std::string& section) {
    std::map<std::string, int> seen;
    for (const auto& entry : map) {
      const int line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) {
        Add(line, section.empty() ? "(top)" : section, absl::StrCat("a key is not a text; ", AllowedIn(section)));
        continue;
      }
      const std::string name = absl::Utf8SafeCEscape(entry.first.Scalar());
      const std::string path = Join(section, name);
      const auto [first, inserted] = seen.emplace(name, line);
      if (!inserted) {
        Add(line, path, absl::StrCat("is given twice, first in line ", first->second, "; keep one"));
      } else if (IsSection(path)) {
        lines_[path] = line;
        if (entry.second.IsMap()) {
          Collect(entry.second, path);
        } else {
          wrong_.insert(path);
          Add(line, path, absl::StrCat("is not a map; ", AllowedIn(path)));
        }
      } else if (FindJobKey(path) != nullptr) {
        given_.emplace(path, Given{entry.second, line});
      } else {
        // What it was meant to be is not its default.
        wrong_.insert(Join(section, Nearest(name, NamesIn(section))));
        Add(line, path, absl::StrCat("unknown key; ", AllowedIn(section), DidYouMean(section, name)));
      }
    }
  }

  static std::string AllowedIn(const std::string& section) {
    return absl::StrCat("allowed here: ", absl::StrJoin(NamesIn(section), ", "));
  }

  void SetAll() {
    for (const JobKey& key : JobKeys()) {
      const auto given = given_.find(key.path);
      if (given != given_.end()) {
        SetGiven(key, given->second);
      } else if (key.preset.has_value()) {
        const KeyValue value = ParseKeyValue(key, *key.preset, /*quoted=*/false).value();  // The table's own text.
        texts_[key.path] = value.text;
        key.set(value, job_);
      } else if (key.required()) {
        Add(LineOfSection(key.path), key.path, absl::StrCat("is missing; must be ", AllowedText(key)));
      }
    }
  }

  void SetGiven(const JobKey& key, const Given& given) {
    wrong_.insert(key.path);  // Until it has proved right.
    if (given.value.IsNull())
      return Add(given.line, key.path, absl::StrCat("has no value; must be ", AllowedText(key)));
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
    if (key.type == KeyType::kPath || key.type == KeyType::kJsonFile) {
      value->text = (std::filesystem::path(folder_) / value->text).lexically_normal();
    }
    texts_[key.path] = value->text;
    if (key.type == KeyType::kJsonFile) {
      absl::StatusOr<std::string> text = ReadJsonFile(value->text);
      if (!text.ok()) {
        return Add(given.line, key.path, absl::StrCat(text.status().message(), "; must be ", AllowedText(key)));
      }
      value->text = *std::move(text);
    }
    key.set(*value, job_);
    wrong_.erase(key.path);
  }

  // Whether the value in `job_` is what the file says: neither the key nor a section it is in has a problem.
  bool IsRight(absl::string_view path) const {
    for (size_t end = path.size(); end != absl::string_view::npos; end = path.rfind('.', end - 1)) {
      if (wrong_.count(std::string(path.substr(0, end))) > 0) return false;
    }
    return true;
  }

  int LineOfSection(absl::string_view path) const {
    const size_t dot = path.rfind('.');
    const auto found = dot == absl::string_view::npos ? lines_.end() : lines_.find(std::string(path.substr(0, dot)));
    return found == lines_.end() ? 1 : found->second;
  }

  int LineOf(const std::string& path) const {
    const auto found = given_.find(path);
    return found == given_.end() ? LineOfSection(path) : found->second.line;
  }

  void RefuseKeysThatDoNotApply() {
    for (const JobKey& key : JobKeys()) {
      if (key.only_with.empty() || given_.count(key.path) == 0) continue;
      const std::pair<std::string, std::string> condition = absl::StrSplit(key.only_with, '=');
      const std::vector<std::string> values = absl::StrSplit(condition.second, ',');
      if (!IsRight(condition.first)) continue;
      const std::string& actual = texts_[condition.first];
      if (absl::c_linear_search(values, actual)) continue;
      Add(LineOf(key.path), key.path,
          absl::StrCat("does not apply to ", condition.first, " ", actual, "; only to ", absl::StrJoin(values, " and "),
                       ": remove it"));
    }
  }

  void FillDependentDefaults() {
    v1::OptimizerSpec& optimizer = *job_.mutable_train()->mutable_optimizer();
    if (given_.count("train.optimizer.learning_rate") == 0) {
      optimizer.set_learning_rate(optimizer.name() == v1::OptimizerSpec::SGD ? 0.05 : 0.001);
    }
    if (given_.count("train.optimizer.weight_decay") == 0) {
      optimizer.set_weight_decay(optimizer.name() == v1::OptimizerSpec::ADAMW ? 0.01 : 0);
    }
    if (given_.count("train.schedule.step_epochs") == 0) {
      job_.mutable_train()->mutable_schedule()->set_step_epochs(job_.train().epochs() / 3.0);
    }
    FillAveragingDefaults();
  }

  void FillAveragingDefaults() {
    using Averaging = v1::AveragingSpec;
    Averaging& averaging = *job_.mutable_averaging();
    const Averaging::Rule rule = averaging.rule();
    const bool each_step = rule == Averaging::SYNC || rule == Averaging::ASYNC || rule == Averaging::SSP;
    const double groups = job_.groups().count();
    if (given_.count("averaging.interval") == 0 || averaging.interval_auto()) {
      averaging.set_interval(each_step ? 1 : rule == Averaging::DILOCO ? 64 : 16);
    }
    if (given_.count("averaging.staleness_bound") == 0) {
      averaging.set_staleness_bound(4 * averaging.interval());
    }
    if (given_.count("averaging.learning_rate") == 0) {
      averaging.set_learning_rate(rule == Averaging::DILOCO ? 0.7 : 1);
    }
    if (given_.count("averaging.momentum") == 0) {
      averaging.set_momentum(rule == Averaging::DILOCO ? 0.9 : rule == Averaging::SLOWMO ? 0.7 : 1 - 1 / groups);
    }
    // alpha = 0.9 / p is EASGD's choice; it overshoots for one or two groups, where 1 / (p + 1) meets in the middle.
    if (given_.count("averaging.alpha") == 0) averaging.set_alpha(std::min(0.9 / groups, 1 / (groups + 1)));
  }

  void CrossCheck() {
    const v1::TrainSpec& train = job_.train();
    const auto below_epochs = [&](const std::string& path, double value) {
      if (value < train.epochs() || !IsRight(path) || !IsRight("train.epochs")) return;
      Add(LineOf(path), path,
          absl::StrCat(value, " is not below train.epochs, which is ", train.epochs(),
                       "; make it less, or train longer"));
    };
    if (train.optimizer().nesterov() && train.optimizer().momentum() == 0 && IsRight("train.optimizer.momentum")) {
      Add(LineOf("train.optimizer.nesterov"), "train.optimizer.nesterov",
          "needs momentum; set train.optimizer.momentum above 0");
    }
    CrossCheckAveraging();
    below_epochs("train.schedule.warmup_epochs", train.schedule().warmup_epochs());
    below_epochs("averaging.post_local_epochs", job_.averaging().post_local_epochs());
    if (train.schedule().name() == v1::ScheduleSpec::STEP)
      below_epochs("train.schedule.step_epochs", train.schedule().step_epochs());
  }

  void CrossCheckAveraging() {
    using Averaging = v1::AveragingSpec;
    const Averaging& averaging = job_.averaging();
    if (averaging.quorum() > job_.groups().count() && IsRight("averaging.quorum") && IsRight("groups.count")) {
      Add(LineOf("averaging.quorum"), "averaging.quorum",
          absl::StrCat(averaging.quorum(), " is more than groups.count, which is ", job_.groups().count()));
    }
    if (averaging.nesterov() && averaging.momentum() == 0 && IsRight("averaging.momentum")) {
      Add(LineOf("averaging.nesterov"), "averaging.nesterov", "needs momentum; set averaging.momentum above 0");
    }
    if (given_.count("averaging.interval_seconds") > 0 && given_.count("averaging.interval") > 0) {
      Add(LineOf("averaging.interval_seconds"), "averaging.interval_seconds",
          "is given beside averaging.interval; keep one of them");
    }
    CrossCheckRhythm();
    const bool whole = averaging.rule() == Averaging::ELASTIC || averaging.rule() == Averaging::NONE;
    if (whole && averaging.compression() == Averaging::COMPRESSION_TOP_K && IsRight("averaging.rule")) {
      Add(LineOf("averaging.compression"), "averaging.compression",
          absl::StrCat("top_k does not apply to averaging.rule ", texts_["averaging.rule"],
                       ", whose groups send all their parameters; use int8, or another rule"));
    }
    const bool gradients = averaging.rule() == Averaging::SYNC || averaging.rule() == Averaging::ASYNC ||
                           averaging.rule() == Averaging::SSP || averaging.rule() == Averaging::DOWNPOUR;
    if (gradients && job_.collectives().aggregation() != v1::CollectivesSpec::ALLREDUCE && IsRight("averaging.rule")) {
      Add(LineOf("collectives.aggregation"), "collectives.aggregation",
          absl::StrCat(texts_["collectives.aggregation"], " does not apply to averaging.rule ",
                       texts_["averaging.rule"], ", which needs the gradients on every rank; use allreduce"));
    }
  }

  // An answer is applied before the next exchange begins. By time the next one waits for that.
  void CrossCheckRhythm() {
    const v1::AveragingSpec& averaging = job_.averaging();
    const bool right = IsRight("averaging.delay") && IsRight("averaging.fragments") && IsRight("averaging.interval") &&
                       IsRight("averaging.rule");
    // With other rules the key itself is wrong.
    const bool turns = averaging.rule() == v1::AveragingSpec::ELASTIC || averaging.rule() >= v1::AveragingSpec::AVERAGE;
    const uint32_t fragments = turns ? std::max<uint32_t>(averaging.fragments(), 1) : 1;
    if (right && fragments > 1 && averaging.interval_seconds() > 0) {
      return Add(LineOf("averaging.fragments"), "averaging.fragments",
                 "does not go with averaging.interval_seconds; use averaging.interval");
    }
    if (right && fragments > 1 && averaging.interval_auto()) {
      return Add(LineOf("averaging.interval"), "averaging.interval",
                 "auto does not go with averaging.fragments; give a number of steps");
    }
    if (right && averaging.interval() % fragments != 0) {
      return Add(LineOf("averaging.fragments"), "averaging.fragments",
                 absl::StrCat("averaging.interval, which is ", averaging.interval(), ", is not a multiple of ",
                              fragments, "; change one of them"));
    }
    const uint32_t stride = averaging.interval() / fragments;
    if (!right || averaging.interval_seconds() > 0 || averaging.delay() < stride) return;
    const std::string divided = fragments > 1 ? " / averaging.fragments" : "";
    Add(LineOf("averaging.delay"), "averaging.delay",
        absl::StrCat(averaging.delay(), " is not below averaging.interval", divided, ", which is ", stride,
                     "; make it less, or the interval longer"));
  }

  const std::string file_;
  const std::string folder_;
  std::map<std::string, int> lines_;    // Sections in the file.
  std::map<std::string, Given> given_;  // Keys in the file.
  std::map<std::string, std::string> texts_;
  std::set<std::string> wrong_;  // Keys and sections with a problem.
  std::vector<Problem> problems_;
  v1::JobSpec job_;
};

}  // namespace

absl::StatusOr<v1::JobSpec> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder) {
  // yaml-cpp reports by exceptions; they end here.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.empty() || documents.front().IsNull()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": is empty; ", JobFileParser::kHint));
    }
    if (documents.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", documents[1].Mark().line + 1,
                                                     ": a second YAML document begins; a job file describes one job"));
    }
    return JobFileParser(file, folder).Parse(documents.front());
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ":", error.mark.line + 1, ": is not YAML: ", error.msg));
  }
}

absl::StatusOr<v1::JobSpec> ReadJobFile(const std::string& path) {
  constexpr char kWhat[] = "name a job file (docs/job-file.md says what is in one)";
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return absl::NotFoundError(absl::StrCat(path, ": no such file; ", kWhat));
  if (std::filesystem::is_directory(status))
    return absl::FailedPreconditionError(absl::StrCat(path, ": is a folder; ", kWhat));
  const absl::StatusOr<std::string> text = ReadStart(path, kBytesMax);
  if (!text.ok()) return absl::FailedPreconditionError(absl::StrCat(path, ": ", text.status().message()));
  if (text->size() > kBytesMax)
    return absl::InvalidArgumentError(absl::StrCat(path, ": is larger than 1 MiB; ", kWhat));
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  return ParseJobFile(*text, path, folder.string());
}

}  // namespace hooke
