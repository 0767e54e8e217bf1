#ifndef HOOKE_CLIENT_TEXT_LISTING_H_
#define HOOKE_CLIENT_TEXT_LISTING_H_

// Jobs and nodes as tables for people and as JSON for programs. Pure. The names in JSON are those of
// proto/coordinator.proto, for values that it has. States and kinds are lower-case words.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Returns a table. The first row is the header. Columns are as wide as their widest cell; the last column is not
// padded. The table ends with a line end.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// The share of the job's steps that all its training groups have done together, such as "46 %". It is "-" if a started
// group has not reported its step yet.
std::string DoneText(const v1::JobStatus& job);

// Returns a table of jobs. If the coordinator left out older jobs, the last line gives their number.
std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, absl::TimeZone zone);
// Below the table is a line for each live server that has answered groups lately. Each unusable server
// and each avoided worker has a line that says why.
std::string NodesTable(const v1::ListNodesResponse& nodes, absl::Time now, absl::TimeZone zone);

nlohmann::ordered_json JobToJson(const v1::JobStatus& job);
nlohmann::ordered_json NodeToJson(const v1::NodeStatus& node);

// Writes JSON as text. Bytes that are not UTF-8 become replacement characters.
std::string DumpJson(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_LISTING_H_
