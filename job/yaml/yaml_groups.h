#ifndef HOOKE_JOB_YAML_YAML_GROUPS_H_
#define HOOKE_JOB_YAML_YAML_GROUPS_H_

// Reads the list of kinds that `groups` of a job file may be, in place of a map.

#include <yaml-cpp/yaml.h>

#include <vector>

#include "job/yaml/file_problems.h"
#include "proto/job.pb.h"

namespace hooke {

// Reads the kinds from a sequence. Returns the problems; if there are any, `groups` has only some of the kinds.
std::vector<LineProblem> ReadGroupKinds(const YAML::Node& list, v1::GroupsSpec& groups);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_YAML_GROUPS_H_
