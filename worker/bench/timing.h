#ifndef HOOKE_WORKER_BENCH_TIMING_H_
#define HOOKE_WORKER_BENCH_TIMING_H_

// A clock and quantiles, for measurements.

#include <vector>

namespace hooke {

// Seconds on a steady clock.
double NowSeconds();

// Returns the `part` quantile of the values: 0.5 is the median. `part` is at least 0 and below 1; `values` is not
// empty.
double Quantile(std::vector<double> values, double part);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_TIMING_H_
