#ifndef HOOKE_SERVER_HISTORY_HISTORY_RECORDS_H_
#define HOOKE_SERVER_HISTORY_HISTORY_RECORDS_H_

// Points of a job's history as messages and records, and back. Pure functions.
//
//   key                           message of proto/record.proto
//   history/NUMBER/SERIES/older   HistoryPart: Series::older
//   history/NUMBER/SERIES/newer   HistoryPart: Series::newer
//
// NUMBER is JobRecord.number with 20 digits, SERIES a SeriesKey with 10: the group's index, and kCenterSeries for the
// center.

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "server/history/series.h"
#include "server/records/record_store.h"

namespace hooke {

using SeriesKey = uint32_t;
constexpr SeriesKey kCenterSeries = std::numeric_limits<uint32_t>::max();

v1::HistoryPoint ToMessage(SeriesKey key, const HistoryPoint& point);

std::string OlderKey(uint64_t number, SeriesKey series);
std::string NewerKey(uint64_t number, SeriesKey series);
std::string HistoryRecord(const std::vector<HistoryPoint>& points);

// The stored points of one series.
struct StoredSeries {
  std::vector<HistoryPoint> older;
  std::vector<HistoryPoint> newer;
};
// Returns the series of one job, all of whose records of history are in `records`. DATA_LOSS: the message names the
// damaged record.
absl::StatusOr<std::map<SeriesKey, StoredSeries>> SeriesFrom(const Records& records);

}  // namespace hooke

#endif  // HOOKE_SERVER_HISTORY_HISTORY_RECORDS_H_
