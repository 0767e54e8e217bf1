#include "worker/daemon/progress_filter.h"

namespace hooke {

bool ProgressFilter::MustPass(uint32_t rank, const v1::RankProgress& progress) {
  const bool is_first = known_.insert(rank).second;
  const bool misses = !progress.absent_servers().empty();
  const bool missed = miss_servers_.erase(rank) > 0;
  if (misses) miss_servers_.insert(rank);
  if (misses || missed || is_first || rank == 0) {
    dropped_.erase(rank);
    return true;
  }
  dropped_[rank] = progress;
  return false;
}

std::optional<v1::RankProgress> ProgressFilter::TakeDropped(uint32_t rank) {
  const auto node = dropped_.extract(rank);
  return node.empty() ? std::nullopt : std::optional<v1::RankProgress>(node.mapped());
}

}  // namespace hooke
