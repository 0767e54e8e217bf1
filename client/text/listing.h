#ifndef HOOKE_CLIENT_TEXT_LISTING_H_
#define HOOKE_CLIENT_TEXT_LISTING_H_

// Jobs and nodes as tables for people and as JSON for programs. Pure. JSON names are those of proto/coordinator.proto;
// states and kinds are lower-case words.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// The first row is the header. Columns are as wide as their widest cell; the last is not padded. Ends with a line end.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// The share of the steps that all training groups together have done: "46 %". It is "-" if a started group has not
// reported its step yet.
std::string DoneText(const v1::JobStatus& job);

// If the coordinator left out older jobs, the last line gives their number.
std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, absl::TimeZone zone);
std::string NodesTable(const v1::ListNodesResponse& nodes, absl::Time now);

nlohmann::ordered_json JobToJson(const v1::JobStatus& job);
nlohmann::ordered_json NodeToJson(const v1::NodeStatus& node);

// Bytes that are not UTF-8 become replacement characters.
std::string DumpJson(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_LISTING_H_
