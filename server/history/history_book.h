#ifndef HOOKE_SERVER_HISTORY_HISTORY_BOOK_H_
#define HOOKE_SERVER_HISTORY_HISTORY_BOOK_H_

// The histories of the jobs that run, in memory, and a list of the parts that wait to be stored. Histories of jobs that
// have ended are in the store only, so 10,000 of them cost no memory. Knows no threads, clocks or stores: the
// Coordinator calls it under its mutex.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/history/history_records.h"
#include "server/history/series.h"
#include "server/records/record_store.h"

namespace hooke {

// Returns the most points that are kept of each series of a job with so many groups; at least 12. A stored job then
// takes less than 2 MiB of the store's file.
size_t SeriesPointsMax(uint32_t groups);
// The time between two writes to the store is at least this long.
constexpr absl::Duration kHistoryEvery = absl::Seconds(3);

// A new point of a job's history.
struct HistoryEntry {
  std::string job_id;
  uint32_t groups = 1;  // The job's groups, among which the room for points is divided.
  SeriesKey series = 0;
  HistoryPoint point;
};

class HistoryBook {
 public:
  void Add(const HistoryEntry& entry, absl::Duration steady);
  // Takes in the stored history of a job that goes on.
  void Load(const std::string& job_id, uint32_t groups, const std::map<SeriesKey, StoredSeries>& stored);
  // Drops the job. The caller does not store what was taken of it.
  void Forget(const std::string& job_id);

  // Returns whether there are points of the job here.
  bool Has(const std::string& job_id) const;
  // Returns the points of the job that are newer than `since_unix_ms`; empty if it has none here.
  std::vector<v1::HistoryPoint> Points(const std::string& job_id, int64_t since_unix_ms = 0) const;

  // Returns whether something waits to be stored, and is due at this steady time.
  bool IsDue(absl::Duration steady) const { return since_.has_value() && steady >= *since_ + kHistoryEvery; }
  // Makes what waits due at once.
  void Hurry();
  // Takes the records to be stored. Only one batch may be out at a time.
  std::map<std::string, Records> Take();  // By job.
  // The batch was stored, or not: then it waits again from `steady` on. Drops the jobs that have ended and of which
  // nothing waits.
  void Done(bool stored, absl::Duration steady, const std::function<bool(const std::string& job_id)>& has_ended);

 private:
  using Key = std::pair<std::string, SeriesKey>;  // Job and series.

  void Erase(const std::string& job_id);
  bool Waits(const std::string& job_id) const;

  std::map<Key, Series> series_;
  // Parts that changed after they were last taken, and parts that are out.
  std::map<Key, Series::Change> waiting_;
  std::map<Key, Series::Change> out_;
  std::optional<absl::Duration> since_;  // When the first of the waiting parts changed.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_HISTORY_HISTORY_BOOK_H_
