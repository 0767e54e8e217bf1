#include "client/history/time_shares.h"

#include "job/history_csv.h"

namespace hooke {
namespace {

// A report may be on its way for half a second, so less than this between two points is no time that was lost.
constexpr double kRestLeastMs = 1000;

}  // namespace

// server/dashboard/web/shares.js computes the same for the web page.
std::optional<TimeShares> TimeSharesBetween(const v1::HistoryPoint* before, const v1::HistoryPoint& point) {
  if (!HasTimes(point) || (before != nullptr && !HasTimes(*before))) return std::nullopt;
  const bool is_new = before == nullptr || point.computing_ms() < before->computing_ms() ||
                      point.collectives_ms() < before->collectives_ms() ||
                      point.exchanging_ms() < before->exchanging_ms();
  const v1::HistoryPoint& then = is_new ? v1::HistoryPoint::default_instance() : *before;
  TimeShares shares;
  shares.compute = static_cast<double>(point.computing_ms() - then.computing_ms());
  shares.collective = static_cast<double>(point.collectives_ms() - then.collectives_ms());
  shares.exchange = static_cast<double>(point.exchanging_ms() - then.exchanging_ms());
  const double known = shares.compute + shares.collective + shares.exchange;
  const double passed = before == nullptr ? known : static_cast<double>(point.unix_ms() - before->unix_ms());
  const double all = passed - known < kRestLeastMs ? known : passed;
  if (all <= 0) return std::nullopt;
  shares.compute /= all;
  shares.collective /= all;
  shares.exchange /= all;
  return shares;
}

}  // namespace hooke
