#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_

// What the benchmark's programs have in common: each is one library's ranks, which prepare some ways to run an
// operation and are then told which to time (serve.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// In place on `count` values of float32; sums. The root is rank 0.
struct Task {
  enum class Operation { kAllReduce, kBroadcast, kReduce };

  Operation operation = Operation::kAllReduce;
  uint64_t count = 0;
};

// One way to run the task, on a buffer of its own.
struct Rival {
  // "impl" or "impl/variant": the best variant counts as the impl.
  std::string name;
  absl::Span<float> values;
  std::function<absl::Status()> call;
  // What owns `values`, if `call` does not.
  std::shared_ptr<void> memory;
  // False for what only moves bytes and has no result.
  bool has_result = true;
};

// The ways this library runs `task`, the same on all ranks; collective. Those of the task before are gone by then.
using Prepare = std::function<absl::StatusOr<std::vector<Rival>>(const Task& task)>;

// A rival on `count` values of ordinary memory; `call` gets them each time.
inline Rival OnVector(const std::string& name, uint64_t count,
                      const std::function<absl::Status(absl::Span<float>)>& call) {
  const auto memory = std::make_shared<std::vector<float>>(count);
  const absl::Span<float> values = absl::MakeSpan(*memory);
  return {name, values, [call, values] { return call(values); }, memory};
}

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_RIVAL_H_
