#include "job/yaml/yaml_sites.h"

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/file_manifest.h"
#include "job/site_command.h"
#include "job/visible_text.h"
#include "job/yaml/yaml_texts.h"

namespace hooke {
namespace {

absl::Status Wrong(const JobKey& key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; must be ", AllowedText(key)));
}

// Reads the entries of a map whose names are texts. `read` gets each name and value.
template <typename Read>
absl::Status ReadMap(const JobKey& key, const YAML::Node& node, const std::string& what, const Read& read) {
  if (!node.IsMap() || HasTag(node)) return Wrong(key, absl::StrCat(what, "is not a map"));
  std::set<std::string> names;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || HasTag(entry.first))
      return Wrong(key, absl::StrCat(what, "has a name that is no text"));
    const std::string& name = entry.first.Scalar();
    if (!names.insert(name).second) return Wrong(key, absl::StrCat(what, "has ", Quoted(name), " twice; keep one"));
    if (absl::Status status = read(name, entry.second); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadSlurm(const JobKey& key, const std::string& what, const YAML::Node& node, v1::SlurmSpec& slurm) {
  const std::map<std::string, std::string*> texts = {{"partition", slurm.mutable_partition()},
                                                     {"account", slurm.mutable_account()},
                                                     {"qos", slurm.mutable_qos()},
                                                     {"time", slurm.mutable_time()},
                                                     {"constraint", slurm.mutable_constraint()},
                                                     {"memory_per_cpu", slurm.mutable_memory_per_cpu()}};
  return ReadMap(key, node, what, [&](const std::string& field, const YAML::Node& value) -> absl::Status {
    const auto text = texts.find(field);
    const bool cpus = field == "cpus_per_task";
    if (text == texts.end() && !cpus) return Wrong(key, absl::StrCat(what, "has the unknown key ", Quoted(field)));
    if (!value.IsScalar() || HasTag(value) || value.Scalar().empty()) {
      return Wrong(key, absl::StrCat(what, field, " is not a text"));
    }
    if (!cpus) {
      *text->second = value.Scalar();
      return absl::OkStatus();
    }
    uint32_t number = 0;
    if (!absl::SimpleAtoi(value.Scalar(), &number) || number == 0) {
      return Wrong(key, absl::StrCat(what, field, " ", Quoted(value.Scalar()), " is not a number above 0"));
    }
    slurm.set_cpus_per_task(number);
    return absl::OkStatus();
  });
}

absl::Status ReadEnvironment(const JobKey& key, const std::string& what, const YAML::Node& node, v1::SiteSpec& site) {
  return ReadMap(key, node, what, [&](const std::string& variable, const YAML::Node& text) {
    if (!text.IsScalar() || HasTag(text)) return Wrong(key, absl::StrCat(what, Quoted(variable), " is not a text"));
    (*site.mutable_environment())[variable] = text.Scalar();
    return absl::OkStatus();
  });
}

absl::Status ReadSite(const JobKey& key, const std::string& name, const YAML::Node& node, v1::JobSpec& job) {
  const std::string what = absl::StrCat("site ", Quoted(name), " ");
  v1::SiteSpec site;
  bool has_slurm = false;
  absl::Status status = ReadMap(key, node, what, [&](const std::string& field, const YAML::Node& value) {
    if (field == "environment") return ReadEnvironment(key, absl::StrCat(what, "environment "), value, site);
    if (field == "slurm") {
      has_slurm = true;
      return ReadSlurm(key, absl::StrCat(what, "slurm "), value, (*job.mutable_slurm())[name]);
    }
    const bool interpreter = field == "interpreter";
    if (!interpreter && field != "virtual_environment") {
      return Wrong(key, absl::StrCat(what, "has the unknown key ", Quoted(field)));
    }
    if (!value.IsScalar() || HasTag(value) || value.Scalar().empty()) {
      return Wrong(key, absl::StrCat(what, field, " is not a path"));
    }
    *(interpreter ? site.mutable_interpreter() : site.mutable_virtual_environment()) = value.Scalar();
    return absl::OkStatus();
  });
  if (site.ByteSizeLong() > 0 || !has_slurm) (*job.mutable_command()->mutable_sites())[name] = std::move(site);
  return status;
}

}  // namespace

absl::StatusOr<std::string> ToFilePath(const JobKey& key, const std::string& text) {
  if (!IsVisibleText(text)) return Wrong(key, absl::StrCat(Quoted(text), " is not a path"));
  std::string path = std::filesystem::path(text).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path == ".") return path;
  // A path such as "a/../b" is normal without "..", so a ".." that is left leads out of the folder.
  if (absl::Status status = CheckFilePath(path); !status.ok()) {
    return Wrong(key, absl::StrCat(Quoted(text), " ", status.message()));
  }
  return path;
}

absl::StatusOr<std::vector<std::string>> ReadFilePaths(const JobKey& key, const YAML::Node& node) {
  if (HasTag(node)) return absl::InvalidArgumentError(TagProblem(node));
  if (!node.IsSequence())
    return Wrong(key, absl::StrCat("is a ", node.IsMap() ? "map" : "text; write a list, like [train.py]"));
  if (node.size() == 0 || node.size() > kFilesMax) return Wrong(key, absl::StrCat("has ", node.size(), " entries"));
  std::vector<std::string> paths;
  for (const YAML::Node& entry : node) {
    if (!entry.IsScalar() || HasTag(entry)) {
      return Wrong(key, absl::StrCat("entry ", paths.size() + 1, " of the list is no text"));
    }
    absl::StatusOr<std::string> path = ToFilePath(key, entry.Scalar());
    if (!path.ok()) return path.status();
    paths.push_back(*std::move(path));
  }
  return paths;
}

absl::Status ReadSites(const JobKey& key, const YAML::Node& node, v1::JobSpec& job) {
  absl::Status status = ReadMap(
      key, node, "", [&](const std::string& name, const YAML::Node& site) { return ReadSite(key, name, site, job); });
  if (status.ok()) status = CheckSites(job);
  if (!status.ok()) {
    job.mutable_command()->clear_sites();
    job.clear_slurm();
  }
  if (absl::StrContains(status.message(), "; must be ") || status.ok()) return status;
  return Wrong(key, status.message());
}

}  // namespace hooke
