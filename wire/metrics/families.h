#ifndef HOOKE_WIRE_METRICS_FAMILIES_H_
#define HOOKE_WIRE_METRICS_FAMILIES_H_

// Families of metrics, in the order in which they are first named, and their text in Prometheus' format. Pure.
//
//   MetricFamilies families;
//   families.Gauge("hooke_workers", "Workers, by state.", 3, {{"state", "alive"}});
//   families.Text();

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace prometheus {
struct ClientMetric;
struct MetricFamily;
enum class MetricType;
}  // namespace prometheus

namespace hooke {

// Names of labels and their values. Values are any UTF-8.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// How often observed values fell into each bucket.
struct HistogramFigures {
  absl::Span<const double> bounds;  // Upper bounds of the buckets, ascending, without infinity. Constants.
  std::vector<uint64_t> counts;     // The values in each bucket alone, not cumulated; one more than `bounds`.
  double sum = 0;                   // The sum of all values.
};

class MetricFamilies {
 public:
  MetricFamilies();
  ~MetricFamilies();
  MetricFamilies(const MetricFamilies&) = delete;
  MetricFamilies& operator=(const MetricFamilies&) = delete;

  // Each adds one sample to the family `name`. All samples of a family have the same type and names of labels, and no
  // two have the same labels. `help` is that of the family's first sample.
  void Gauge(absl::string_view name, absl::string_view help, double value, const MetricLabels& labels = {});
  void Counter(absl::string_view name, absl::string_view help, double value, const MetricLabels& labels = {});
  void Histogram(absl::string_view name, absl::string_view help, const HistogramFigures& figures,
                 const MetricLabels& labels = {});

  std::string Text() const;

 private:
  prometheus::ClientMetric& Add(absl::string_view name, absl::string_view help, prometheus::MetricType type,
                                const MetricLabels& labels);

  std::vector<prometheus::MetricFamily> families_;
  absl::flat_hash_map<std::string, size_t> places_;  // By name: the family's place in families_.
};

}  // namespace hooke

#endif  // HOOKE_WIRE_METRICS_FAMILIES_H_
