#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_

// Types that the benchmark's programs share. Each program is the ranks of one library. It prepares several ways to run
// an operation, and collectives.py tells it which one to time (serve.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// An operation in place on `count` values of float32. Reductions are sums; the root is rank 0.
struct Task {
  enum class Operation { kAllReduce, kBroadcast, kReduce };

  Operation operation = Operation::kAllReduce;
  uint64_t count = 0;
};

// One way to run the task. It has its own buffer.
struct Rival {
  // "LIBRARY" or "LIBRARY/VARIANT". The best variant counts as the library's result.
  std::string name;
  absl::Span<float> values;
  std::function<absl::Status()> call;
  // Owns `values`. Null if `call` or the library's group owns them.
  std::shared_ptr<void> memory;
  // False if the call only moves bytes and has no result to check.
  bool has_result = true;
};

// Returns one Rival for each way in which this library can run `task`. All ranks call it together and return the same
// list. The caller destroys the previous task's rivals first.
using Prepare = std::function<absl::StatusOr<std::vector<Rival>>(const Task& task)>;

// Returns a rival whose `count` values lie in ordinary memory. It passes them to `call` each time.
inline Rival OnVector(const std::string& name, uint64_t count,
                      const std::function<absl::Status(absl::Span<float>)>& call) {
  const auto memory = std::make_shared<std::vector<float>>(count);
  const absl::Span<float> values = absl::MakeSpan(*memory);
  return {name, values, [call, values] { return call(values); }, memory};
}

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
