#ifndef HOOKE_SERVER_PARAMETERS_LOG_LIMIT_H_
#define HOOKE_SERVER_PARAMETERS_LOG_LIMIT_H_

// Limits how often a line that strangers can cause is logged: at most `lines_max` lines in each period. Counts the
// lines that were left out. Knows no clock and no log. Calls come from one thread.

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace hooke {

class LogLimit {
 public:
  LogLimit(uint64_t lines_max, absl::Duration period) : lines_max_(lines_max), period_(period) {}

  // If a line may be written now, returns the number of lines that were left out since the last one. Otherwise returns
  // nullopt.
  std::optional<uint64_t> Take(absl::Time now) {
    if (now >= until_) {
      until_ = now + period_;
      lines_ = 0;
    }
    if (lines_ >= lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }

 private:
  const uint64_t lines_max_;
  const absl::Duration period_;
  absl::Time until_ = absl::InfinitePast();
  uint64_t lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LOG_LIMIT_H_
