#include "job/site_command.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "job/command.h"
#include "job/visible_text.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr size_t kPathBytesMax = 4096;
constexpr uint32_t kCpusPerTaskMax = 1024;

absl::Status CheckPath(absl::string_view field, const std::string& path) {
  if (path.empty() || (path[0] == '/' && path.size() <= kPathBytesMax && IsVisibleText(path))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " ", Quoted(path), " is not an absolute path"));
}

absl::Status CheckSite(const v1::SiteSpec& site) {
  const bool both = !site.interpreter().empty() && !site.virtual_environment().empty();
  if (both) return absl::InvalidArgumentError("has both interpreter and virtual_environment; keep one");
  if (site.interpreter().empty() && site.virtual_environment().empty() && site.environment().empty()) {
    return absl::InvalidArgumentError("has neither interpreter, nor virtual_environment, nor environment");
  }
  if (absl::Status status = CheckPath("interpreter", site.interpreter()); !status.ok()) return status;
  if (absl::Status status = CheckPath("virtual_environment", site.virtual_environment()); !status.ok()) return status;
  std::vector<std::string> variables;
  for (const auto& [name, value] : site.environment()) variables.push_back(absl::StrCat(name, "=", value));
  absl::Status status = CheckVariables(variables);
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat("environment: ", status.message()));
}

// Returns whether the text has 1 to `most` characters, each of them a letter, a digit or one of `more`.
bool IsWordOf(absl::string_view text, size_t most, absl::string_view more) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [more](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(more, c);
  });
}

bool IsMemory(absl::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const absl::string_view unit = text.substr(digits);
  return digits >= 1 && digits <= 16 && (unit.empty() || (unit.size() == 1 && absl::StrContains("KMGT", unit)));
}

// These values become flags of sbatch. Slurm itself knows which of them it accepts.
absl::Status CheckSlurm(const v1::SlurmSpec& slurm) {
  if (slurm.ByteSizeLong() == 0) return absl::InvalidArgumentError("slurm asks for nothing");
  for (const auto& [field, value] : {std::pair("partition", slurm.partition()), std::pair("account", slurm.account()),
                                     std::pair("qos", slurm.qos())}) {
    if (value.empty() || IsWordOf(value, 64, "._,-")) continue;
    return absl::InvalidArgumentError(absl::StrCat("slurm: ", field, " ", Quoted(value), " is not a name"));
  }
  const std::string& time = slurm.time();
  if (!time.empty() && (time.size() > 32 || time.find_first_not_of("0123456789:-") != time.npos || time[0] == '-')) {
    return absl::InvalidArgumentError(
        absl::StrCat("slurm: time ", Quoted(time), " is not a time; write minutes, h:mm:ss or days-hh:mm:ss"));
  }
  if (!slurm.constraint().empty() && !IsWordOf(slurm.constraint(), 256, "._,:=+!&|*()[]-")) {
    return absl::InvalidArgumentError(
        absl::StrCat("slurm: constraint ", Quoted(slurm.constraint()), " is not a constraint"));
  }
  if (slurm.cpus_per_task() > kCpusPerTaskMax) {
    return absl::InvalidArgumentError(absl::StrCat("slurm: cpus_per_task ", slurm.cpus_per_task(),
                                                   " is out of range; at most ", kCpusPerTaskMax, " are allowed"));
  }
  if (!slurm.memory_per_cpu().empty() && !IsMemory(slurm.memory_per_cpu())) {
    return absl::InvalidArgumentError(
        absl::StrCat("slurm: memory_per_cpu ", Quoted(slurm.memory_per_cpu()), " is not a size; write 500M or 4G"));
  }
  return absl::OkStatus();
}

absl::Status AtSite(const std::string& name, const absl::Status& status) {
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat("site ", name, " ", status.message()));
}

// Returns the names of all sites of which the job says something.
std::set<std::string> SiteNames(const v1::JobSpec& job) {
  std::set<std::string> names;
  for (const auto& [name, site] : job.command().sites()) names.insert(name);
  for (const auto& [name, slurm] : job.slurm()) names.insert(name);
  return names;
}

}  // namespace

bool HasSites(const v1::JobSpec& job) { return !job.command().sites().empty() || !job.slurm().empty(); }

absl::Status CheckSites(const v1::JobSpec& job) {
  const std::set<std::string> names = SiteNames(job);
  if (names.size() > kSitesMax) return absl::InvalidArgumentError(absl::StrCat("has ", names.size(), " sites"));
  for (const std::string& name : names) {
    if (!IsNodeName(name)) return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is not a site's name"));
    const auto site = job.command().sites().find(name);
    if (site != job.command().sites().end()) {
      if (absl::Status status = AtSite(name, CheckSite(site->second)); !status.ok()) return status;
    }
    const auto slurm = job.slurm().find(name);
    if (slurm == job.slurm().end()) continue;
    if (absl::Status status = AtSite(name, CheckSlurm(slurm->second)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool NamesPython(absl::string_view program) {
  if (!absl::ConsumePrefix(&program, "python")) return false;
  if (program.empty() || program == "3") return true;
  return absl::ConsumePrefix(&program, "3.") && !program.empty() &&
         std::all_of(program.begin(), program.end(), [](char c) { return absl::ascii_isdigit(c); });
}

SiteCommand CommandAtSite(const v1::CommandSpec& command, const std::string& site, const std::string& path) {
  std::map<std::string, std::string> variables(command.environment().begin(), command.environment().end());
  SiteCommand at;
  at.arguments = {command.arguments().begin(), command.arguments().end()};
  const auto found = command.sites().find(site);
  if (found != command.sites().end()) {
    const v1::SiteSpec& spec = found->second;
    for (const auto& [name, value] : spec.environment()) variables[name] = value;
    std::string interpreter = spec.interpreter();
    if (const std::string& environment = spec.virtual_environment(); !environment.empty()) {
      const auto own = variables.find("PATH");
      variables["PATH"] = absl::StrCat(environment, "/bin:", own == variables.end() ? path : own->second);
      variables["VIRTUAL_ENV"] = environment;
      interpreter = environment + "/bin/python3";
    }
    if (!interpreter.empty() && NamesPython(at.arguments[0])) at.arguments[0] = interpreter;
  }
  for (const auto& [name, value] : variables) at.variables.push_back(absl::StrCat(name, "=", value));
  return at;
}

std::string SitesText(const v1::JobSpec& job) { return absl::StrJoin(SiteNames(job), ", "); }

}  // namespace hooke
