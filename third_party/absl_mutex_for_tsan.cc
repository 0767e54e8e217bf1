// Tells ThreadSanitizer which accesses absl::Mutex and absl::CondVar order. Debian's libabsl is not instrumented. So
// the sanitizer sees neither its futex nor its annotations, and would report every guarded field as a race.
//
// The linker redirects the calls of instrumented code to this file (--wrap in BUILD). Each function here calls the
// library, and reports a release before the mutex is given up and an acquire after it is taken.

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Time;

// --wrap=SYMBOL sends calls of SYMBOL to __wrap_SYMBOL and makes the original callable as __real_SYMBOL. Here SYMBOL is
// a mangled member function in the library's inline namespace.
#define WRAP(symbol) __wrap__ZN4absl7debian3##symbol
#define REAL(symbol) __real__ZN4absl7debian3##symbol

namespace {

void Taken(void* mutex) { __tsan_acquire(mutex); }
void GivingUp(void* mutex) { __tsan_release(mutex); }

// Turns the library's deadlock detector off, because it keeps a graph under a lock that is not wrapped. The sanitizer
// has its own detector.
[[maybe_unused]] const bool library_detector_off =
    (absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore), true);

// A waiter's condition, with the mutex's order. The library runs the condition in whichever thread holds the mutex, so
// each run must be ordered by hand, too.
struct OrderedCondition {
  const Condition* condition;
  Mutex* mutex;
  bool Eval() {
    Taken(mutex);
    const bool value = condition->Eval();
    GivingUp(mutex);
    return value;
  }
};

}  // namespace

#define WRAP_LOCK(symbol)           \
  void REAL(symbol)(Mutex*);        \
  void WRAP(symbol)(Mutex * self) { \
    REAL(symbol)(self);             \
    Taken(self);                    \
  }

#define WRAP_UNLOCK(symbol)         \
  void REAL(symbol)(Mutex*);        \
  void WRAP(symbol)(Mutex * self) { \
    GivingUp(self);                 \
    REAL(symbol)(self);             \
  }

#define WRAP_CONDITION(symbol)                                        \
  void REAL(symbol)(Mutex*, const Condition&);                        \
  void WRAP(symbol)(Mutex * self, const Condition& condition) {       \
    OrderedCondition ordered{&condition, self};                       \
    GivingUp(self);                                                   \
    REAL(symbol)(self, Condition(&ordered, &OrderedCondition::Eval)); \
    Taken(self);                                                      \
  }

#define WRAP_CONDITION_UNTIL(symbol, Until)                                                   \
  bool REAL(symbol)(Mutex*, const Condition&, Until);                                         \
  bool WRAP(symbol)(Mutex * self, const Condition& condition, Until until) {                  \
    OrderedCondition ordered{&condition, self};                                               \
    GivingUp(self);                                                                           \
    const bool met = REAL(symbol)(self, Condition(&ordered, &OrderedCondition::Eval), until); \
    Taken(self);                                                                              \
    return met;                                                                               \
  }

#define WRAP_WAIT_UNTIL(symbol, Until)                            \
  bool REAL(symbol)(CondVar*, Mutex*, Until);                     \
  bool WRAP(symbol)(CondVar * self, Mutex * mutex, Until until) { \
    GivingUp(mutex);                                              \
    const bool timed_out = REAL(symbol)(self, mutex, until);      \
    Taken(mutex);                                                 \
    return timed_out;                                             \
  }

extern "C" {

WRAP_LOCK(5Mutex4LockEv)
WRAP_LOCK(5Mutex10ReaderLockEv)
WRAP_UNLOCK(5Mutex6UnlockEv)
WRAP_UNLOCK(5Mutex12ReaderUnlockEv)

bool REAL(5Mutex7TryLockEv)(Mutex*);
bool WRAP(5Mutex7TryLockEv)(Mutex* self) {
  const bool taken = REAL(5Mutex7TryLockEv)(self);
  if (taken) Taken(self);
  return taken;
}

WRAP_CONDITION(5Mutex5AwaitERKNS0_9ConditionE)
WRAP_CONDITION(5Mutex8LockWhenERKNS0_9ConditionE)
WRAP_CONDITION_UNTIL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, Duration)
WRAP_CONDITION_UNTIL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, Time)
WRAP_CONDITION_UNTIL(5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE, Duration)
WRAP_CONDITION_UNTIL(5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE, Time)

void REAL(7CondVar4WaitEPNS0_5MutexE)(CondVar*, Mutex*);
void WRAP(7CondVar4WaitEPNS0_5MutexE)(CondVar* self, Mutex* mutex) {
  GivingUp(mutex);
  REAL(7CondVar4WaitEPNS0_5MutexE)(self, mutex);
  Taken(mutex);
}
WRAP_WAIT_UNTIL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, Duration)
WRAP_WAIT_UNTIL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, Time)

}  // extern "C"
