#ifndef HOOKE_SERVER_PARAMETERS_ANSWER_WINDOW_H_
#define HOOKE_SERVER_PARAMETERS_ANSWER_WINDOW_H_

// Keeps the last answers to one rank. They are repeated if the rank's stream broke before they arrived. Bounded: a full
// window forgets its oldest answer.

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace hooke {

// Identifies an exchange of a group. Ordered by incarnation, then by sequence; {0, 0} comes before every exchange.
struct ExchangeId {
  uint32_t incarnation = 0;
  uint64_t sequence = 0;

  friend bool operator==(const ExchangeId& a, const ExchangeId& b) {
    return a.incarnation == b.incarnation && a.sequence == b.sequence;
  }
  friend bool operator<(const ExchangeId& a, const ExchangeId& b) {
    return a.incarnation != b.incarnation ? a.incarnation < b.incarnation : a.sequence < b.sequence;
  }
};

// Thread-safe.
class AnswerWindow {
 public:
  explicit AnswerWindow(uint32_t capacity) : capacity_(capacity) {}

  // Keeps a copy of the answer to an exchange of the block that begins at value `first`. A full window forgets its
  // oldest answer.
  void Store(const ExchangeId& exchange, uint64_t first, absl::Span<const float> answer);

  // Copies the kept answer to `answer`. False: none is kept for this exchange and block, or it has another length than
  // `answer`.
  bool Find(const ExchangeId& exchange, uint64_t first, absl::Span<float> answer) const;

 private:
  struct Slot {
    ExchangeId exchange;
    uint64_t first = 0;
    std::vector<float> answer;
  };

  const uint32_t capacity_;
  mutable absl::Mutex mutex_;
  // Grows up to capacity_ on demand, because most ranks' windows stay empty.
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // The slot to write next.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ANSWER_WINDOW_H_
