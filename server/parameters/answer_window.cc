#include "server/parameters/answer_window.h"

#include <algorithm>

namespace hooke {

void AnswerWindow::Store(const ExchangeId& exchange, uint64_t first, absl::Span<const float> answer) {
  if (capacity_ == 0) return;
  absl::MutexLock lock(&mutex_);
  if (next_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[next_];
  slot.exchange = exchange;
  slot.first = first;
  slot.answer.assign(answer.begin(), answer.end());
  next_ = (next_ + 1) % capacity_;
}

bool AnswerWindow::Find(const ExchangeId& exchange, uint64_t first, absl::Span<float> answer) const {
  absl::MutexLock lock(&mutex_);
  for (const Slot& slot : slots_) {
    if (!(slot.exchange == exchange) || slot.first != first || slot.answer.size() != answer.size()) continue;
    std::copy(slot.answer.begin(), slot.answer.end(), answer.begin());
    return true;
  }
  return false;
}

}  // namespace hooke
