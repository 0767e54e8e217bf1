#include "wire/metrics/families.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

namespace hooke {

MetricFamilies::MetricFamilies() = default;
MetricFamilies::~MetricFamilies() = default;

prometheus::ClientMetric& MetricFamilies::Add(absl::string_view name, absl::string_view help,
                                              prometheus::MetricType type, const MetricLabels& labels) {
  const auto [found, is_new] = places_.try_emplace(name, families_.size());
  if (is_new) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = std::string(name);
    family.help = std::string(help);
    family.type = type;
  }
  prometheus::ClientMetric& metric = families_[found->second].metric.emplace_back();
  metric.label.reserve(labels.size());
  for (const auto& [label, value] : labels) metric.label.push_back({label, value});
  return metric;
}

void MetricFamilies::Gauge(absl::string_view name, absl::string_view help, double value, const MetricLabels& labels) {
  Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricFamilies::Counter(absl::string_view name, absl::string_view help, double value, const MetricLabels& labels) {
  Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void MetricFamilies::Histogram(absl::string_view name, absl::string_view help, const HistogramFigures& figures,
                               const MetricLabels& labels) {
  auto& histogram = Add(name, help, prometheus::MetricType::Histogram, labels).histogram;
  uint64_t seen = 0;
  for (size_t i = 0; i < figures.counts.size(); ++i) {
    seen += figures.counts[i];
    const double bound = i < figures.bounds.size() ? figures.bounds[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({seen, bound});
  }
  histogram.sample_count = seen;
  histogram.sample_sum = figures.sum;
}

std::string MetricFamilies::Text() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families_);
  return text.str();
}

}  // namespace hooke
