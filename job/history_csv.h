#ifndef HOOKE_JOB_HISTORY_CSV_H_
#define HOOKE_JOB_HISTORY_CSV_H_

// The history of a job as CSV (RFC 4180), for spreadsheets and programs. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Returns whether a group's point says where its time went. A point that an older coordinator stored does not.
bool HasTimes(const v1::HistoryPoint& point);

// Returns a header and one row per point, in the order of `points`. A value that a point does not have is empty; one
// that is no number is "nan". Numbers have as many digits as it takes to read the same double again.
std::string HistoryCsv(absl::string_view job_id, const std::vector<v1::HistoryPoint>& points);

}  // namespace hooke

#endif  // HOOKE_JOB_HISTORY_CSV_H_
