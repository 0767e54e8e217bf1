#ifndef HOOKE_CLIENT_HISTORY_SERIES_NAME_H_
#define HOOKE_CLIENT_HISTORY_SERIES_NAME_H_

// The series to which a point of a history belongs: a group's, or the center's. Pure.

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/coordinator.pb.h"

namespace hooke {

inline bool SameSeries(const v1::HistoryPoint& a, const v1::HistoryPoint& b) {
  return a.has_group() == b.has_group() && a.group() == b.group();
}

// Returns "group 3" or "center".
inline std::string SeriesName(const v1::HistoryPoint& point) {
  return point.has_group() ? absl::StrCat("group ", point.group()) : "center";
}

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_SERIES_NAME_H_
