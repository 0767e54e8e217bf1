#include "server/cluster/link_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hooke {

void LinkTable::Add(const v1::NodeLink& link) {
  const bool round_trip_is_possible = std::isfinite(link.round_trip_seconds()) && link.round_trip_seconds() > 0;
  const bool bandwidth_is_possible = std::isfinite(link.bytes_per_second()) && link.bytes_per_second() >= 0;
  if (link.from() == link.to() || !round_trip_is_possible || !bandwidth_is_possible) return;
  const Pair pair = std::minmax(link.from(), link.to());
  if (const auto known = link_of_pair_.find(pair); known != link_of_pair_.end()) {
    links_.erase(known->second);
    link_of_pair_.erase(known);
  }
  if (links_.size() == kPairsMax) {
    link_of_pair_.erase(std::minmax(links_.front().from(), links_.front().to()));
    links_.pop_front();
  }
  link_of_pair_[pair] = links_.insert(links_.end(), link);
}

std::vector<v1::NodeLink> LinkTable::All() const {
  std::vector<v1::NodeLink> all(links_.begin(), links_.end());
  std::sort(all.begin(), all.end(), [](const v1::NodeLink& a, const v1::NodeLink& b) {
    return std::tie(a.from(), a.to()) < std::tie(b.from(), b.to());
  });
  return all;
}

}  // namespace hooke
