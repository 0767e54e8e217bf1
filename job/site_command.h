#ifndef HOOKE_JOB_SITE_COMMAND_H_
#define HOOKE_JOB_SITE_COMMAND_H_

// The key `sites` of a job: the interpreter and the environment of each site, for jobs with a command, and what its
// batch jobs ask of Slurm. Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kSitesMax = 64;

// Whether the job says anything about a site.
bool HasSites(const v1::JobSpec& job);

// Checks the job's SiteSpecs and SlurmSpecs. INVALID_ARGUMENT names the fault, and the site if one is wrong.
absl::Status CheckSites(const v1::JobSpec& job);

// Whether a command's first word is one that a site's interpreter replaces: "python", "python3" or "python3.N".
bool NamesPython(absl::string_view program);

struct SiteCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // "NAME=value", each name once, in the order of names.
};

// Returns the command as it runs at a site. `path` is the worker's own PATH, which a virtual environment is put before.
// Where the job and the site set one variable, the site's value counts.
SiteCommand CommandAtSite(const v1::CommandSpec& command, const std::string& site, const std::string& path);

// Returns the sites for people, in the order of names: "cloud, hpc".
std::string SitesText(const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_SITE_COMMAND_H_
