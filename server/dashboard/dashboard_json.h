#ifndef HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_
#define HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_

// Makes the JSON that the web page reads. Pure.
//
// Protocol Buffers' own rules turn a message into JSON. Fields have their names of proto/. A field that has its default
// is left out. A 64-bit integer is a string. A number that is not finite is the string "NaN", "Infinity" or
// "-Infinity". What is no message has plain numbers; null stands for one that is not known or not finite.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/job_row.h"
#include "server/coordinator/coordinator.h"
#include "server/dashboard/job_events.h"
#include "server/dashboard/page_export.h"

namespace hooke {

// INTERNAL: the message cannot be written as JSON.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

// Returns {"version", "whole", "rows": [{"id", "state", "reason", ...}], "left_out", "now_unix_ms"}.
std::string RowsJson(const JobRows& rows, absl::string_view version, int64_t now_unix_ms);

// Returns {"version", "now_unix_ms", "row"}. If the view has the status, it is there as "job", with its RoundText as
// "round".
absl::StatusOr<std::string> ViewJson(const Coordinator::JobView& view, absl::string_view version, int64_t now_unix_ms);

// Returns {"series": [{"group": 0, "unix_ms": [...], "step": [...], "loss": [...], ...}]}: for each series a column of
// each value. The series of the center has no "group".
std::string HistoryJson(const std::vector<v1::HistoryPoint>& points);

// Returns {"events": [{"unix_ms", "kind", "group", "text"}], "next_offset"}.
std::string EventsJson(const std::vector<JobEvent>& events, uint64_t next_offset);

// Returns at most about `points_max` of the points, in their order. Keeps every n-th point of each series, with the
// same n for all series, and always the last point of each.
std::vector<v1::HistoryPoint> ThinHistory(const std::vector<v1::HistoryPoint>& points, size_t points_max);

std::string PageJson(const std::string& action_key, const std::string& coordinator, const std::string& read_only);
std::string PreparedJson(const PreparedExport& prepared);  // {"ticket", "file", "bytes", "notes": [...]}
std::string SubmittedJson(const std::string& job_id);      // {"job_id"}

// Returns {"text": ..., "next_offset": ...}. Bytes that are not UTF-8 become replacement characters.
std::string LogJson(const std::string& text, uint64_t next_offset);

// Returns {"error": the status's message}.
std::string ErrorJson(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_DASHBOARD_JSON_H_
