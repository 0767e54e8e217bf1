#include "server/history/history_records.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/record.pb.h"
#include "server/records/job_records.h"

namespace hooke {
namespace {

HistoryPoint FromMessage(const v1::HistoryPoint& message) {
  HistoryPoint point;
  point.unix_ms = message.unix_ms();
  point.step = message.step();
  point.epoch = message.epoch();
  point.loss = message.loss();
  point.samples_per_s = message.samples_per_s();
  if (message.has_exchange_ms()) point.exchange_ms = message.exchange_ms();
  point.accuracy = message.accuracy();
  if (message.has_center_distance()) point.center_distance = message.center_distance();
  if (message.has_staleness()) point.staleness = message.staleness();
  point.computing_ms = message.computing_ms();
  point.collectives_ms = message.collectives_ms();
  point.exchanging_ms = message.exchanging_ms();
  return point;
}

std::string SeriesPrefix(uint64_t number, SeriesKey series) {
  return absl::StrFormat("%s%010d/", HistoryPrefix(number), series);
}

}  // namespace

v1::HistoryPoint ToMessage(SeriesKey key, const HistoryPoint& point) {
  v1::HistoryPoint message;
  if (key != kCenterSeries) message.set_group(key);
  message.set_unix_ms(point.unix_ms);
  message.set_step(point.step);
  message.set_epoch(point.epoch);
  message.set_loss(point.loss);
  if (key != kCenterSeries) message.set_samples_per_s(point.samples_per_s);
  if (point.exchange_ms.has_value()) message.set_exchange_ms(*point.exchange_ms);
  if (point.center_distance.has_value()) message.set_center_distance(*point.center_distance);
  if (point.staleness.has_value()) message.set_staleness(*point.staleness);
  message.set_computing_ms(point.computing_ms);
  message.set_collectives_ms(point.collectives_ms);
  message.set_exchanging_ms(point.exchanging_ms);
  if (key == kCenterSeries) message.set_accuracy(point.accuracy);
  return message;
}

std::string OlderKey(uint64_t number, SeriesKey series) { return absl::StrCat(SeriesPrefix(number, series), "older"); }
std::string NewerKey(uint64_t number, SeriesKey series) { return absl::StrCat(SeriesPrefix(number, series), "newer"); }

std::string HistoryRecord(const std::vector<HistoryPoint>& points) {
  stored::HistoryPart part;
  // With kCenterSeries, ToMessage sets no group: the record's key says which series it is.
  for (const HistoryPoint& point : points) {
    v1::HistoryPoint& message = *part.add_points();
    message = ToMessage(kCenterSeries, point);
    message.set_samples_per_s(point.samples_per_s);
  }
  return part.SerializeAsString();
}

absl::StatusOr<std::map<SeriesKey, StoredSeries>> SeriesFrom(const Records& records) {
  std::map<SeriesKey, StoredSeries> all;
  for (const auto& [key, value] : records) {
    const std::vector<std::string> parts = absl::StrSplit(key, '/');
    SeriesKey series = 0;
    stored::HistoryPart part;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &series) || (parts[3] != "older" && parts[3] != "newer") ||
        !part.ParseFromString(value)) {
      return absl::DataLossError(absl::StrCat("record ", key, " is damaged"));
    }
    std::vector<HistoryPoint>& points = parts[3] == "older" ? all[series].older : all[series].newer;
    points.reserve(static_cast<size_t>(part.points_size()));
    for (const v1::HistoryPoint& point : part.points()) points.push_back(FromMessage(point));
  }
  return all;
}

}  // namespace hooke
