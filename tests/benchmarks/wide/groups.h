#ifndef HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_
#define HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_

// Many groups of one rank in one process, each with connections of its own to one server, as real groups have: the
// clients are those of hooke-rank. Rule elastic. Nothing is trained; the groups exchange by the clock.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

struct WideOptions {
  std::string server;  // host:port.
  uint32_t groups = 256;
  uint64_t values = 262144;  // Of the center: 1 MiB.
  absl::Duration period = absl::Seconds(1);
  absl::Duration length = absl::Seconds(20);
  absl::Duration timeout = absl::Seconds(30);  // Of one exchange.
  uint32_t seed = 1;                           // Of the order in which groups start.
  bool grpc = false;                           // Exchanges by gRPC instead of plain TCP.
};

struct WideResult {
  std::vector<double> latencies_ms;  // Of every exchange, from when it was due to its last answer.
  uint32_t errors = 0;               // Groups whose exchange failed; each stops then.
  std::string first_error;
};

// One thread.
class WideRun {
 public:
  explicit WideRun(WideOptions options);
  ~WideRun();

  // Connects every group and exchanges once.
  absl::Status Attach();
  // Every group exchanges once in each period, their starts spread evenly over it. DATA_LOSS: afterwards center and
  // groups do not add up to what they were, within rounding.
  absl::StatusOr<WideResult> Run();

 private:
  struct Groups;

  const WideOptions options_;
  const std::unique_ptr<Groups> groups_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_
