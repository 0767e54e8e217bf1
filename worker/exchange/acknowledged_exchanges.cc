#include "worker/exchange/acknowledged_exchanges.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

constexpr size_t kMostRemembered = 1 << 16;  // These take 1 MiB.

// Writes 61706 as "61,706".
std::string Grouped(uint64_t number) {
  std::string text = absl::StrCat(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace

void AcknowledgedExchanges::Note(uint64_t sequence, absl::Time now) {
  answered_.push_back({sequence, now});
  if (answered_.size() <= kMostRemembered) return;
  answered_.pop_front();
  dropped_ = true;
}

Setback AcknowledgedExchanges::GoBack(uint64_t snapshot, uint64_t last) {
  Setback setback;
  const auto after = [this](uint64_t sequence) {
    return std::upper_bound(answered_.begin(), answered_.end(), sequence,
                            [](uint64_t value, const Answered& each) { return value < each.sequence; });
  };
  const auto begin = after(snapshot);
  const auto end = after(last);
  if (begin >= end) return setback;
  setback.exchanges = static_cast<uint64_t>(end - begin);
  setback.more = begin == answered_.begin() && dropped_;
  setback.time = (end - 1)->at - (begin == answered_.begin() ? begin : begin - 1)->at;
  answered_.erase(begin, end);
  return setback;
}

std::string SetbackText(const SetbackPlace& place, const Setback& setback) {
  const double part = 100 * static_cast<double>(place.shard.size()) / static_cast<double>(place.values);
  return absl::StrCat("server ", place.address, " came back from its snapshot of ", UtcText(place.snapshot),
                      ": parameters ", Grouped(place.shard.begin), "-", Grouped(place.shard.end - 1),
                      " of the center (", absl::StrFormat("%.0f", part), " %) went back by ",
                      setback.more ? "more than " : "", Grouped(setback.exchanges),
                      setback.exchanges == 1 ? " exchange, " : " exchanges, ",
                      absl::StrFormat("%.1f s", absl::ToDoubleSeconds(setback.time)));
}

}  // namespace hooke
