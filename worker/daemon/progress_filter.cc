#include "worker/daemon/progress_filter.h"

namespace hooke {

bool ProgressFilter::MustPass(uint32_t rank, const v1::RankProgress& progress) {
  const bool is_first = known_.insert(rank).second;
  if (progress.absent_servers().empty()) return miss_servers_.erase(rank) > 0 || is_first || rank == 0;
  miss_servers_.insert(rank);
  return true;
}

}  // namespace hooke
