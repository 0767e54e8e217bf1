#include "server/history/staleness.h"

namespace hooke {
namespace {

// Reports of other groups are up to a second old. Over this long that is a small error.
constexpr absl::Duration kWindow = absl::Seconds(5);
// The first result comes after this long, and is then a rough one.
constexpr absl::Duration kShortest = absl::Seconds(2);

}  // namespace

std::optional<double> Staleness::Report(const ReportedExchanges& report, absl::Duration steady) {
  const auto [found, is_new] = groups_.try_emplace(report.group);
  Group& group = found->second;
  // The exchanges before a start's first report do not count. If the coordinator has restarted, they may be old.
  const bool begins = is_new || group.incarnation != report.incarnation;
  if (begins) group.reported = report.exchanges;
  group.incarnation = report.incarnation;
  if (report.exchanges > group.reported) {
    group.own += report.exchanges - group.reported;
    all_ += report.exchanges - group.reported;
    group.reported = report.exchanges;
  }
  const Mark now = {steady, group.own, all_};
  // A start begins with a fresh center, however long the group was away.
  if (begins) {
    group.older = group.newer = now;
  } else if (steady >= group.newer.steady + kWindow && group.own > group.newer.own) {
    group.older = group.newer;
    group.newer = now;
  }
  const uint64_t own = group.own - group.older.own;
  if (own == 0 || steady < group.older.steady + kShortest) return std::nullopt;
  return static_cast<double>(all_ - group.older.all - own) / static_cast<double>(own);
}

}  // namespace hooke
