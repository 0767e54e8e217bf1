#include "job/done_share.h"

#include <algorithm>

namespace hooke {

std::optional<double> DoneShare(absl::Span<const GroupDone> groups, uint32_t count) {
  double sum = 0;
  for (const GroupDone& group : groups) {
    if (group.state == v1::GROUP_STATE_FINISHED) {
      sum += 1;
    } else if (group.progress != nullptr && group.progress->steps_total() > 0) {
      const auto total = static_cast<double>(group.progress->steps_total());
      sum += std::min(1.0, static_cast<double>(group.progress->step()) / total);
    } else if (group.progress == nullptr && group.incarnation > 0 && group.state != v1::GROUP_STATE_WAITING) {
      return std::nullopt;
    }
  }
  return sum / std::max<uint32_t>(1, count);
}

}  // namespace hooke
