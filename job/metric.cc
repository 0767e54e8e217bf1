#include "job/metric.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/visible_text.h"

namespace hooke {

absl::Status CheckMetricName(absl::string_view name) {
  if (name.size() <= kMetricNameBytesMax && IsVisibleText(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the metric's name ", Quoted(name),
                                                 " is not allowed: give a name of 1 to ", kMetricNameBytesMax,
                                                 " bytes of visible UTF-8, such as \"perplexity\""));
}

absl::Status SetMetric(absl::string_view name, double value, Metrics& metrics) {
  if (absl::Status status = CheckMetricName(name); !status.ok()) return status;
  const auto at =
      std::find_if(metrics.begin(), metrics.end(), [name](const v1::Metric& each) { return each.name() == name; });
  if (at != metrics.end()) {
    at->set_value(value);
    return absl::OkStatus();
  }
  if (metrics.size() >= kMetricsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", kMetricsMax, " metrics already, and ", Quoted(name),
                     " is a new one: report each number under the same name at each step"));
  }
  v1::Metric* metric = metrics.Add();
  metric->set_name(std::string(name));
  metric->set_value(value);
  return absl::OkStatus();
}

Metrics AllowedMetrics(const Metrics& from) {
  Metrics allowed;
  for (const v1::Metric& each : from) SetMetric(each.name(), each.value(), allowed).IgnoreError();
  return allowed;
}

std::string MetricsText(const Metrics& metrics) {
  return absl::StrJoin(metrics, ", ", [](std::string* out, const v1::Metric& metric) {
    absl::StrAppendFormat(out, "%s %.6g", Escaped(metric.name()), metric.value());
  });
}

}  // namespace hooke
