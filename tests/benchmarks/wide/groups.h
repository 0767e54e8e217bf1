#ifndef HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_
#define HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_

// Many groups of one rank in one process. As real groups do, each has its own connections to one server. They use
// hooke-rank's client code and the rule elastic. The groups train nothing and exchange at fixed times.

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
  uint64_t values = 262144;  // Length of the center: 1 MiB.
  absl::Duration period = absl::Seconds(1);
  absl::Duration length = absl::Seconds(20);
  absl::Duration timeout = absl::Seconds(30);  // For one exchange.
  uint32_t seed = 1;                           // Decides the order in which groups start.
  bool grpc = false;                           // Exchange by gRPC instead of plain TCP.
};

struct WideResult {
  std::vector<double> latencies_ms;  // One for each exchange, from when it was due to its last answer.
  uint32_t errors = 0;               // Number of groups whose exchange failed; each of them then stops.
  std::string first_error;
};

// All groups of the benchmark. Use it from one thread.
class WideRun {
 public:
  explicit WideRun(WideOptions options);
  ~WideRun();

  // Connects every group, and makes one exchange for each.
  absl::Status Attach();
  // Lets every group exchange once per period; their starts are spread evenly over it. DATA_LOSS: the sum of center and
  // groups has changed by more than rounding.
  absl::StatusOr<WideResult> Run();

 private:
  struct Groups;

  const WideOptions options_;
  const std::unique_ptr<Groups> groups_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_WIDE_GROUPS_H_
