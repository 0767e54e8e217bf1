#ifndef HOOKE_CLIENT_TEXT_LINKS_TEXT_H_
#define HOOKE_CLIENT_TEXT_LINKS_TEXT_H_

// The network between workers, as `hooke nodes --links` shows it. Pure.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Two tables. The first one has a row for each address of each worker. The second one has a row for each pair of
// workers that has been measured. Below are pairs that could run a group together and were not measured: at
// most kUnmeasuredMax, and a line with the number of the others.
constexpr size_t kUnmeasuredMax = 20;
std::string LinksText(const v1::ListNodesResponse& nodes, absl::Time now);

// The names are those of proto/coordinator.proto. A bandwidth that is not known is null.
nlohmann::ordered_json LinkToJson(const v1::NodeLink& link);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_LINKS_TEXT_H_
