#include "client/history/ticks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace hooke {

Ticks RoundTicks(double low, double high, int count) {
  if (!(high > low)) high = low + std::max(1.0, std::abs(low));
  const double rough = std::max((high - low) / std::max(count, 1), 1e-300);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * 0.999) step = factor * power;
  }
  Ticks ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last && ticks.values.size() < 100; ++i) ticks.values.push_back(i * step);
  ticks.low = ticks.values.front();
  ticks.high = ticks.values.back();
  ticks.decimals = static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, 12.0));
  return ticks;
}

std::string TickText(const Ticks& ticks, double value) {
  if (std::abs(value) >= 1e9 || (ticks.decimals > 6 && value != 0)) return absl::StrFormat("%.3g", value);
  return absl::StrFormat("%.*f", ticks.decimals, value == 0 ? 0.0 : value);
}

}  // namespace hooke
