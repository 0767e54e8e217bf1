#ifndef HOOKE_WORKER_BENCH_TIMING_H_
#define HOOKE_WORKER_BENCH_TIMING_H_

// What measuring is made of.

#include <vector>

namespace hooke {

// Seconds, of a steady clock.
double NowSeconds();

// The value that `part` (0 to below 1) of the others are not above; `values` has one at least.
double Quantile(std::vector<double> values, double part);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_TIMING_H_
