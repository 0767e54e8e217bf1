#include "job/history_csv.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hooke {
namespace {

std::string NumberText(double value) {
  if (std::isnan(value)) return "nan";
  char digits[40];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, end.ptr};
}

// Returns the text as a field. A field with a comma, a quote or a line end stands in quotes.
std::string Field(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

bool HasTimes(const v1::HistoryPoint& point) {
  return point.computing_ms() + point.collectives_ms() + point.exchanging_ms() > 0;
}

std::string HistoryCsv(absl::string_view job_id, const std::vector<v1::HistoryPoint>& points) {
  std::string csv =
      "job,series,group,time_unix_ms,step,epoch,loss,samples_per_s,exchange_ms,accuracy_fraction,center_distance,"
      "staleness,compute_s,collective_s,exchange_s\r\n";
  const std::string job = Field(job_id);
  for (const v1::HistoryPoint& point : points) {
    const bool group = point.has_group();
    absl::StrAppend(&csv, job, ",", group ? "group" : "center", ",", group ? absl::StrCat(point.group()) : "", ",");
    absl::StrAppend(&csv, point.unix_ms(), ",", point.step(), ",", NumberText(point.epoch()), ",",
                    NumberText(point.loss()), ",");
    absl::StrAppend(&csv, group ? NumberText(point.samples_per_s()) : "", ",",
                    point.has_exchange_ms() ? NumberText(point.exchange_ms()) : "", ",",
                    group ? "" : NumberText(point.accuracy()), ",");
    absl::StrAppend(&csv, point.has_center_distance() ? NumberText(point.center_distance()) : "", ",",
                    point.has_staleness() ? NumberText(point.staleness()) : "");
    for (const uint64_t ms : {point.computing_ms(), point.collectives_ms(), point.exchanging_ms()}) {
      absl::StrAppend(&csv, ",", HasTimes(point) ? NumberText(static_cast<double>(ms) / 1000) : "");
    }
    absl::StrAppend(&csv, "\r\n");
  }
  return csv;
}

}  // namespace hooke
