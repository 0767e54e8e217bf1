#ifndef HOOKE_JOB_PROFILE_PROFILE_SUMMARY_H_
#define HOOKE_JOB_PROFILE_PROFILE_SUMMARY_H_

// Combines the profiles of a job's ranks: one row for each combination of operation, size and fusion. The command
// `hooke profile` and the job's web page show them. Pure. Values from ranks are not trusted.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace hooke {

enum class ProfileSizes {
  // One row for each power of two: sizes [2^k, 2^(k+1) - 1] bytes.
  kBins,
  // One row for each size that ranks counted separately.
  kExact,
};

// Calls of all ranks for one row. `calls`, `bytes`, `time_ns` and `step_ns` are sums over the ranks.
struct ProfileRow {
  v1::Operation operation = v1::OPERATION_UNSPECIFIED;
  bool fused = false;
  uint64_t bytes_min = 0;  // Smallest size of a call.
  uint64_t bytes_max = 0;
  std::set<std::string> algorithms;  // The algorithms that are known. Safe to print.
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t step_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  // Number of calls by duration. Keyed by [begin, end) in nanoseconds.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> buckets;

  // The duration that a share `q` (0 to 1) of the calls did not exceed, in nanoseconds. It is the middle of a bucket,
  // kept within [min_ns, max_ns]. A bucket is at most 1/16 of its begin wide, so the result is wrong by at most 1/32.
  double Quantile(double q) const;
  double GigabytesPerSecond() const;  // `bytes` over `time_ns`; 0 if no time is known.
};

struct ProfileSummary {
  uint32_t groups = 0;
  uint32_t ranks = 0;
  uint64_t step_ns = 0;  // Time in steps, summed over the ranks.
  uint64_t calls_left_out = 0;
  std::vector<ProfileRow> rows;  // Sorted by operation, size and fusion.

  // The row's `step_ns` divided by that of the summary; 0 if no time in steps is known.
  double ShareOf(const ProfileRow& row) const;
};

ProfileSummary Summarize(absl::Span<const v1::ReadProfileResponse> ranks, ProfileSizes sizes);

nlohmann::ordered_json ProfileToJson(const ProfileSummary& summary);

}  // namespace hooke

#endif  // HOOKE_JOB_PROFILE_PROFILE_SUMMARY_H_
