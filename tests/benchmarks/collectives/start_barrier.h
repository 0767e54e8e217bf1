#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_START_BARRIER_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_START_BARRIER_H_

// The barrier before each timed call, which all libraries use: a counter in a file that all ranks map. All ranks are
// processes of one machine, even if they stand for several hosts.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

class StartBarrier {
 public:
  // Maps the barrier's file. `path` is a file of at least 4 KiB, which must be zeroed before the first rank maps it.
  static absl::StatusOr<std::unique_ptr<StartBarrier>> Map(const std::string& path, int size);
  ~StartBarrier();
  StartBarrier(const StartBarrier&) = delete;
  StartBarrier& operator=(const StartBarrier&) = delete;

  // Waits until all ranks have called it. DEADLINE_EXCEEDED after `timeout`.
  absl::Status Wait(absl::Duration timeout);

 private:
  struct Shared {
    std::atomic<uint32_t> arrived;
    alignas(64) std::atomic<uint32_t> round;
  };

  StartBarrier(Shared* shared, int size) : shared_(shared), size_(size) {}

  Shared* const shared_;
  const int size_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_START_BARRIER_H_
