#ifndef HOOKE_CLIENT_HISTORY_TICKS_H_
#define HOOKE_CLIENT_HISTORY_TICKS_H_

// The round numbers at which an axis has its ticks. Pure.

#include <string>
#include <vector>

namespace hooke {

struct Ticks {
  double low = 0;   // The axis begins here; at most the least value.
  double high = 1;  // The axis ends here; at least the largest value.
  std::vector<double> values;
  int decimals = 0;  // Digits after the point that tell the ticks apart.
};

// Returns about `count` ticks at multiples of 1, 2 or 5 times a power of ten, which include both values. Both are
// finite. If they are equal or the wrong way round, the axis is made longer.
Ticks RoundTicks(double low, double high, int count);

// Returns a tick's text: "0.25", "20000", "1e+12".
std::string TickText(const Ticks& ticks, double value);

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_TICKS_H_
