#include "worker/exchange/exchange_deadline.h"

#include <algorithm>

namespace hooke {

absl::Time ExchangeDeadline(const ExchangePatience& patience, const ExchangeProgress& progress) {
  const absl::Time end = progress.started + patience.whole;
  if (progress.answered.has_value()) return std::min(*progress.answered + patience.silence, end);
  return std::min(progress.started + (progress.suspect ? patience.first : patience.silence), end);
}

bool GivesUpUnreachable(const ExchangePatience& patience, const ExchangeProgress& progress, absl::Time now) {
  return now >= progress.answered.value_or(progress.started) + patience.unreachable;
}

ExchangePatience PatienceOf(const GroupPatience& group) {
  ExchangePatience patience;
  patience.awaits_quorum = group.awaits_quorum;
  // The exchange gets less time than the limit of the collective in which finished ranks wait. Otherwise those ranks
  // would give up first.
  patience.whole = group.collective * 2 / 3;
  if (group.ranks == 1) patience.whole += 2 * TransferTime(group.values);
  // No later exchange makes up for the last one, so it skips no server and waits as long as the other ranks can.
  if (group.last) {
    patience.silence = patience.first = patience.unreachable = group.collective * 2 / 3;
    return patience;
  }
  patience.silence = std::min(group.exchange + group.grace, group.collective / 2);
  patience.first = std::min(group.exchange / 10 + group.grace, patience.silence);
  patience.unreachable = std::min(group.exchange / 50 + group.grace, patience.silence);
  patience.skips_absent = true;
  return patience;
}

absl::Duration TransferTime(uint64_t values) {
  constexpr double kBytesPerSecond = 1e6;
  return absl::Seconds(static_cast<double>(values) * sizeof(float) / kBytesPerSecond);
}

}  // namespace hooke
