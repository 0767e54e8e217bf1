#ifndef HOOKE_JOB_METRIC_H_
#define HOOKE_JOB_METRIC_H_

// What a program may report as a metric of its own: a number under a name, for instance its perplexity. Ranks check
// their programs by it, and the coordinator checks the ranks. Pure.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/worker.pb.h"

namespace hooke {

inline constexpr size_t kMetricNameBytesMax = 64;
// The most metrics of a group, and of an evaluation.
inline constexpr int kMetricsMax = 32;

using Metrics = google::protobuf::RepeatedPtrField<v1::Metric>;

// INVALID_ARGUMENT: the message says what a name may be.
absl::Status CheckMetricName(absl::string_view name);

// Sets the metric of this name, and adds it if there is none. INVALID_ARGUMENT: the name is not allowed, or there are
// kMetricsMax others already; nothing has changed.
absl::Status SetMetric(absl::string_view name, double value, Metrics& metrics);

// Returns the metrics of `from` that are allowed, each name once with its last value, and at most kMetricsMax.
Metrics AllowedMetrics(const Metrics& from);

// Example: "perplexity 21.5, learning rate 0.001"; empty if there are none. A terminal acts on none of it.
std::string MetricsText(const Metrics& metrics);

}  // namespace hooke

#endif  // HOOKE_JOB_METRIC_H_
