#include "worker/exchange/server_presence.h"

#include <algorithm>

namespace hooke {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(500);
// Each exchange that tries a server which answers only Locate calls delays training by ExchangePatience::first. So the
// pause between such exchanges doubles up to this limit.
constexpr absl::Duration kLongestPause = absl::Seconds(16);
constexpr uint32_t kMostDoublings = 10;

}  // namespace

std::optional<absl::Time> ServerPresence::absent_since() const {
  if (may_wait_ && !silenced_) return std::nullopt;
  if (back_ && !unreliable_) return std::nullopt;
  return missed_since_;
}

void ServerPresence::Ended(ExchangeEnd end, absl::Time began, absl::Time now) {
  if (end == ExchangeEnd::kComplete) {
    *this = ServerPresence();
    return;
  }
  if (!missed_since_.has_value()) missed_since_ = began;
  may_wait_ = end == ExchangeEnd::kMayWait;
  if (back_ && !may_wait_) unreliable_ = true;
  back_ = false;
  silent_ = end == ExchangeEnd::kSilent ? silent_ + 1 : 0;
  next_question_ = now;
  if (silent_ > 1) next_question_ += std::min(kPause * (1 << std::min(silent_ - 2, kMostDoublings)), kLongestPause);
}

void ServerPresence::Asked(bool answered, absl::Time now) {
  back_ = answered;
  silenced_ = !answered;
  next_question_ = answered ? absl::InfiniteFuture() : now + kPause;
}

}  // namespace hooke
