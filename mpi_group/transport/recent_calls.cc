#include "mpi_group/transport/recent_calls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

void RecentCalls::Tell(Transport& transport, absl::Time now) {
  for (told_ = std::max(told_, count_ - std::min(count_, kKept)); told_ < count_;) {
    transport.Begin(labels_[++told_ % kKept], now);
  }
}

absl::Status RecentCalls::Settle(Transport& transport, const absl::Status& failure, const Failed& call) {
  Tell(transport, call.begun);
  const absl::Duration to_settle = std::min(std::max(call.deadline / 10, absl::Milliseconds(200)), absl::Seconds(1));
  const absl::Status status = transport.Settle(failure, SteadyNow() + to_settle);
  return absl::Status(status.code(),
                      absl::StrCat(call.what, " on rank ", transport.rank(), " of ", transport.size(), " (deadline ",
                                   absl::FormatDuration(call.deadline), "): ", status.message()));
}

}  // namespace hooke
