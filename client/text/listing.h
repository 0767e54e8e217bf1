#ifndef HOOKE_CLIENT_TEXT_LISTING_H_
#define HOOKE_CLIENT_TEXT_LISTING_H_

// Jobs and nodes as tables for people and as JSON for programs. Pure. The JSON's names are those of
// proto/coordinator.proto; states and kinds are words in lower case.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Columns are as wide as their widest cell; the last is not padded. Ends with a line end. The first row is the head.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// Part of the steps that all training groups together have done: "46 %". "-" where a group that was started has not
// told its step yet.
std::string DoneText(const v1::JobStatus& job);

// Ends with how many older jobs the coordinator left out, if it did.
std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, absl::TimeZone zone);
std::string NodesTable(const v1::ListNodesResponse& nodes, absl::Time now);

nlohmann::ordered_json JobToJson(const v1::JobStatus& job);
nlohmann::ordered_json NodeToJson(const v1::NodeStatus& node);

// Text that is not UTF-8 is shown with replacement characters instead of failing.
std::string DumpJson(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_LISTING_H_
