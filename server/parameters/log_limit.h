#ifndef HOOKE_SERVER_PARAMETERS_LOG_LIMIT_H_
#define HOOKE_SERVER_PARAMETERS_LOG_LIMIT_H_

// How often something that strangers cause is logged: so many lines in each period, and how many were left out. Knows
// no clock and no log. Of one thread.

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace hooke {

class LogLimit {
 public:
  LogLimit(uint64_t lines_max, absl::Duration period) : lines_max_(lines_max), period_(period) {}

  // Whether a line is to be written now; if so, how many were left out since the last one.
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
