#include "mpi_group/recent_calls.h"

#include <algorithm>

namespace hooke {

void RecentCalls::Tell(Transport& transport, absl::Time now) {
  for (told_ = std::max(told_, count_ - std::min(count_, kKept)); told_ < count_;) {
    transport.Begin(labels_[++told_ % kKept], now);
  }
}

}  // namespace hooke
