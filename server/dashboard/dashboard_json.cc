#include "server/dashboard/dashboard_json.h"

#include <google/protobuf/util/json_util.h>

#include <map>
#include <nlohmann/json.hpp>

namespace hooke {
namespace {

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Group index, or -1 for the center.
int64_t SeriesOf(const v1::HistoryPoint& point) { return point.has_group() ? int64_t{point.group()} : -1; }

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  return status.ok() ? json : ErrorJson(absl::InternalError(std::string(status.message())));
}

std::vector<v1::HistoryPoint> ThinHistory(const std::vector<v1::HistoryPoint>& points, int64_t since_unix_ms,
                                          size_t points_max) {
  std::map<int64_t, size_t> left;  // For each series: its newer points that were not looked at yet.
  size_t newer = 0;
  for (const v1::HistoryPoint& point : points) {
    if (point.unix_ms() <= since_unix_ms) continue;
    ++left[SeriesOf(point)];
    ++newer;
  }
  const size_t every = newer / (points_max + 1) + 1;
  std::vector<v1::HistoryPoint> thin;
  for (const v1::HistoryPoint& point : points) {
    if (point.unix_ms() <= since_unix_ms) continue;
    if (left[SeriesOf(point)]-- % every == 1 % every) thin.push_back(point);
  }
  return thin;
}

std::string LogJson(const std::string& text, uint64_t next_offset) {
  return Dump({{"text", text}, {"next_offset", next_offset}});
}

std::string ErrorJson(const absl::Status& status) { return Dump({{"error", std::string(status.message())}}); }

}  // namespace hooke
