#ifndef HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_
#define HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_

// Makes the JSON that the web page reads. Protocol Buffers' own rules turn a message into JSON. Fields have their names
// of proto/. A field that has its default is left out. A 64-bit integer is a string. A number that is not finite is the
// string "NaN", "Infinity" or "-Infinity". Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "proto/coordinator.pb.h"

namespace hooke {

std::string ToJson(const google::protobuf::Message& message);

// Returns the points that are newer than `since_unix_ms`, in their order, and at most about `points_max`. Of each
// series every n-th point is left, with one n for all series, and the last point.
std::vector<v1::HistoryPoint> ThinHistory(const std::vector<v1::HistoryPoint>& points, int64_t since_unix_ms,
                                          size_t points_max);

// Returns {"text": ..., "next_offset": ...}. Bytes that are not UTF-8 become replacement characters.
std::string LogJson(const std::string& text, uint64_t next_offset);

// Returns {"error": the status's message}.
std::string ErrorJson(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_
