#include "server/dashboard/dashboard_json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/history_csv.h"
#include "server/dashboard/round_text.h"

namespace hooke {
namespace {

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json Finite(std::optional<double> value) {
  return value.has_value() && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json RowOf(const JobRow& row) {
  return {{"id", row.job_id},
          {"state", v1::JobState_Name(row.state)},
          {"reason", row.reason},
          {"submitted_unix_ms", row.submitted_unix_ms},
          {"first_step_unix_ms", row.first_step_unix_ms},
          {"ended_unix_ms", row.ended_unix_ms},
          {"done", Finite(row.done)},
          {"accuracy", Finite(row.accuracy)},
          {"what", row.what},
          {"owner", row.owner}};
}

// Group index, or -1 for the center.
int64_t SeriesOf(const v1::HistoryPoint& point) { return point.has_group() ? int64_t{point.group()} : -1; }

}  // namespace

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (status.ok()) return json;
  return absl::InternalError("this cannot be written as JSON: " + std::string(status.message()));
}

std::string RowsJson(const JobRows& rows, absl::string_view version, int64_t now_unix_ms) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobRow& row : rows.rows) list.push_back(RowOf(row));
  return Dump({{"version", std::string(version)},
               {"whole", rows.whole},
               {"rows", std::move(list)},
               {"left_out", rows.left_out},
               {"now_unix_ms", now_unix_ms}});
}

absl::StatusOr<std::string> ViewJson(const Coordinator::JobView& view, absl::string_view version, int64_t now_unix_ms) {
  std::string json = Dump({{"version", std::string(version)}, {"now_unix_ms", now_unix_ms}, {"row", RowOf(view.row)}});
  if (!view.status.has_value()) return json;
  const absl::StatusOr<std::string> job = ToJson(*view.status);
  if (!job.ok()) return job.status();
  json.pop_back();  // The brace at the end.
  const std::string round = Dump(nlohmann::json(RoundText(*view.status)));
  return absl::StrCat(json, ",\"round\":", round, ",\"job\":", *job, "}");
}

std::string HistoryJson(const std::vector<v1::HistoryPoint>& points) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < points.size(); ++i) {
    const v1::HistoryPoint& point = points[i];
    if (i == 0 || SeriesOf(point) != SeriesOf(points[i - 1])) {
      list.push_back(nlohmann::json::object());
      if (point.has_group()) list.back()["group"] = point.group();
    }
    nlohmann::json& series = list.back();
    series["unix_ms"].push_back(point.unix_ms());
    series["step"].push_back(point.step());
    series["loss"].push_back(Finite(point.loss()));
    if (point.has_group()) {
      series["samples_per_s"].push_back(Finite(point.samples_per_s()));
      series["exchange_ms"].push_back(point.has_exchange_ms() ? Finite(point.exchange_ms()) : nullptr);
      series["center_distance"].push_back(point.has_center_distance() ? Finite(point.center_distance()) : nullptr);
      series["staleness"].push_back(point.has_staleness() ? Finite(point.staleness()) : nullptr);
      const bool timed = HasTimes(point);
      const auto known = [timed](uint64_t ms) { return timed ? nlohmann::json(ms) : nlohmann::json(nullptr); };
      series["computing_ms"].push_back(known(point.computing_ms()));
      series["collectives_ms"].push_back(known(point.collectives_ms()));
      series["exchanging_ms"].push_back(known(point.exchanging_ms()));
    } else {
      series["accuracy"].push_back(Finite(point.accuracy()));
    }
  }
  return Dump({{"series", std::move(list)}});
}

std::string EventsJson(const std::vector<JobEvent>& events, uint64_t next_offset) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobEvent& event : events) {
    nlohmann::json& shown = list.emplace_back();
    shown = {{"unix_ms", event.unix_ms}, {"kind", event.kind}, {"text", event.text}};
    if (event.group.has_value()) shown["group"] = *event.group;
  }
  return Dump({{"events", std::move(list)}, {"next_offset", next_offset}});
}

std::vector<v1::HistoryPoint> ThinHistory(const std::vector<v1::HistoryPoint>& points, size_t points_max) {
  std::map<int64_t, size_t> left;  // For each series: its points that were not looked at yet.
  for (const v1::HistoryPoint& point : points) ++left[SeriesOf(point)];
  const size_t every = points.size() / (points_max + 1) + 1;
  std::vector<v1::HistoryPoint> thin;
  for (const v1::HistoryPoint& point : points) {
    if (left[SeriesOf(point)]-- % every == 1 % every) thin.push_back(point);
  }
  return thin;
}

std::string PageJson(const std::string& action_key, const std::string& coordinator, const std::string& read_only) {
  return Dump({{"action_key", action_key}, {"coordinator", coordinator}, {"read_only", read_only}});
}

std::string PreparedJson(const PreparedExport& prepared) {
  return Dump({{"ticket", prepared.ticket},
               {"file", prepared.file_name},
               {"bytes", prepared.bytes},
               {"notes", prepared.notes}});
}

std::string SubmittedJson(const std::string& job_id) { return Dump({{"job_id", job_id}}); }

std::string LogJson(const std::string& text, uint64_t next_offset) {
  return Dump({{"text", text}, {"next_offset", next_offset}});
}

std::string ErrorJson(const absl::Status& status) { return Dump({{"error", std::string(status.message())}}); }

}  // namespace hooke
