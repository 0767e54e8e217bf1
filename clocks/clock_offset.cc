#include "clocks/clock_offset.h"

#include <unistd.h>

#include <array>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

// The largest time that counts: some 146 years in nanoseconds. Offsets between such times stay in range.
constexpr int64_t kTimeMax = int64_t{1} << 62;

}  // namespace

void ClockOffset::Add(const ClockRoundTrip& trip) {
  for (const int64_t time : {trip.sent, trip.answered, trip.received}) {
    if (time < 0 || time > kTimeMax) return;
  }
  if (trip.received < trip.sent) return;
  trips_.push_back(trip);
  if (trips_.size() > kRoundTripsMax) trips_.pop_front();
}

std::optional<ClockOffset::Estimate> ClockOffset::Best(int64_t now) const {
  std::optional<Estimate> best;
  for (const ClockRoundTrip& trip : trips_) {
    const int64_t half = (trip.received - trip.sent) / 2;
    const int64_t age = now > trip.received ? now - trip.received : 0;
    const Estimate estimate{trip.answered - (trip.sent + half), half + 1 + age / 1000000000 * kDriftPerBillion +
                                                                    age % 1000000000 * kDriftPerBillion / 1000000000};
    if (!best.has_value() || estimate.error < best->error) best = estimate;
  }
  return best;
}

std::string MachineClockName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  if (boot.empty()) return "";
  std::array<char, 64> time_namespace{};
  const ssize_t length = readlink("/proc/self/ns/time", time_namespace.data(), time_namespace.size());
  return length <= 0 ? boot
                     : absl::StrCat(boot, " ", absl::string_view(time_namespace.data(), static_cast<size_t>(length)));
}

}  // namespace hooke
