#ifndef HOOKE_CLIENT_HISTORY_TIME_SHARES_H_
#define HOOKE_CLIENT_HISTORY_TIME_SHARES_H_

// Where the time of a group went between two points of its history. Pure.

#include <optional>

#include "proto/coordinator.pb.h"

namespace hooke {

// Fractions of the time, each from 0 to 1. What is missing to 1 is time in which the group was down, was starting, or
// evaluated the model.
struct TimeShares {
  double compute = 0;
  double collective = 0;
  double exchange = 0;
};

// Returns the shares between `before`, the point of the same group before `point`, and `point`. Null: there is none, so
// the shares count from the group's start. If a count of `point` is lower than that of `before`, the group was started
// again in between. nullopt: not known, as of points that an older coordinator stored.
std::optional<TimeShares> TimeSharesBetween(const v1::HistoryPoint* before, const v1::HistoryPoint& point);

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_TIME_SHARES_H_
