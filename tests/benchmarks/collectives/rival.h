#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_

// Shared by the benchmark's programs. Each program is one library's ranks. It prepares several ways to run an operation
// and is then told which one to time (serve.h).

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

// One way to run the task, on its own buffer.
struct Rival {
  // "impl" or "impl/variant". The best variant counts as the result of the impl.
  std::string name;
  absl::Span<float> values;
  std::function<absl::Status()> call;
  // Owns `values` if `call` does not.
  std::shared_ptr<void> memory;
  // False if the call only moves bytes and has no result to check.
  bool has_result = true;
};

// Makes this library's ways to run `task`, the same on all ranks. A collective call. The previous task's ways are gone
// by then.
using Prepare = std::function<absl::StatusOr<std::vector<Rival>>(const Task& task)>;

// A rival on `count` values of ordinary memory, which `call` gets each time.
inline Rival OnVector(const std::string& name, uint64_t count,
                      const std::function<absl::Status(absl::Span<float>)>& call) {
  const auto memory = std::make_shared<std::vector<float>>(count);
  const absl::Span<float> values = absl::MakeSpan(*memory);
  return {name, values, [call, values] { return call(values); }, memory};
}

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
