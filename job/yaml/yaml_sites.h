#ifndef HOOKE_JOB_YAML_YAML_SITES_H_
#define HOOKE_JOB_YAML_YAML_SITES_H_

// Reads the values of a job file's keys `files` and `sites`.

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_keys.h"
#include "proto/job.pb.h"

namespace hooke {

// Returns the paths of the key `files`, without "./" and slashes at their ends. INVALID_ARGUMENT: it is no list of
// relative paths; the message has the form of ParseKeyValue's.
absl::StatusOr<std::vector<std::string>> ReadFilePaths(const JobKey& key, const YAML::Node& node);

// Checks one path of the key `files`, and returns it as ReadFilePaths does.
absl::StatusOr<std::string> ToFilePath(const JobKey& key, const std::string& text);

// Reads the key `sites` into `job`. INVALID_ARGUMENT: it is no map of sites; the message has the same form.
absl::Status ReadSites(const JobKey& key, const YAML::Node& node, v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_YAML_SITES_H_
