#include "job/site_command.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "job/command.h"
#include "job/visible_text.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr size_t kPathBytesMax = 4096;

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

}  // namespace

absl::Status CheckSites(const v1::CommandSpec& command) {
  if (command.sites().size() > kSitesMax) {
    return absl::InvalidArgumentError(absl::StrCat("has ", command.sites().size(), " sites"));
  }
  const std::map<std::string, v1::SiteSpec> sites(command.sites().begin(), command.sites().end());
  for (const auto& [name, site] : sites) {
    if (!IsNodeName(name)) return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is not a site's name"));
    if (absl::Status status = CheckSite(site); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("site ", name, " ", status.message()));
    }
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

std::string SitesText(const v1::CommandSpec& command) {
  std::vector<std::string> names;
  for (const auto& [name, site] : command.sites()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

}  // namespace hooke
