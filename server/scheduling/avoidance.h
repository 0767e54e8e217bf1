#ifndef HOOKE_SERVER_SCHEDULING_AVOIDANCE_H_
#define HOOKE_SERVER_SCHEDULING_AVOIDANCE_H_

// Is a worker avoided for a while, because groups died there? A pure function of plain values. The times are steady.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace hooke {

// The death of a group on a worker. It ended badly there, or it was lost with the worker.
struct Death {
  std::string job_id;
  uint32_t group = 0;
  absl::Duration at;
  std::string why;
};

struct AvoidOptions {
  size_t deaths_min = 3;
  absl::Duration within = absl::Minutes(10);
  absl::Duration avoid_for = absl::Minutes(10);  // From the last death on.
};

struct Avoidance {
  absl::Duration until;
  std::string reason;  // "groups died there 3 times within 2m4s, the last one group 0 of fashion-3: ...".
};

// Decides from the worker's deaths, the oldest first. The worker is avoided if at least `deaths_min` deaths fall into
// the time `within` that ends with the last one. Exception: if each of these is the death of another group of one job,
// that job is to blame. nullopt: the worker is not avoided.
std::optional<Avoidance> Avoid(const std::deque<Death>& deaths, absl::Duration now, const AvoidOptions& options);

// Adds a death. No more of them are kept than Avoid may need.
void AddDeath(std::deque<Death>& deaths, Death death, const AvoidOptions& options);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_AVOIDANCE_H_
