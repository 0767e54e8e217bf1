#ifndef HOOKE_CLIENT_PROFILE_PROFILE_SUMMARY_H_
#define HOOKE_CLIENT_PROFILE_PROFILE_SUMMARY_H_

// The profiles of a job's ranks as one: a row for each operation, size, and fused or not. Pure. What ranks sent is
// not trusted.

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
  kBins,   // A row for each power of two: [2^k, 2^(k+1) - 1] bytes.
  kExact,  // For each size that ranks counted by itself.
};

// The calls of some ranks; `calls`, `bytes` and times are the sums over them.
struct ProfileRow {
  v1::Operation operation = v1::OPERATION_UNSPECIFIED;
  bool fused = false;
  uint64_t bytes_min = 0;  // Of a call.
  uint64_t bytes_max = 0;
  std::set<std::string> algorithms;  // Those that are known.
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t step_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> buckets;  // [begin, end) ns -> calls.

  // The duration below or at which a share `q`, 0 to 1, of the calls were, in nanoseconds: the middle of its bucket,
  // and never outside [min_ns, max_ns]. Ranks' buckets are at most 1/16 wide, so it is at most 1/32 off.
  double Quantile(double q) const;
};

struct ProfileSummary {
  uint32_t groups = 0;
  uint32_t ranks = 0;
  uint64_t step_ns = 0;  // Sum over the ranks.
  uint64_t calls_left_out = 0;
  std::vector<ProfileRow> rows;  // By operation, size and fusion.
};

ProfileSummary Summarize(absl::Span<const v1::ReadProfileResponse> ranks, ProfileSizes sizes);

// For people. Ends with a line end.
std::string ProfileTable(const ProfileSummary& summary);
nlohmann::ordered_json ProfileToJson(const ProfileSummary& summary);

// "all-reduce"
std::string OperationText(v1::Operation operation);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROFILE_PROFILE_SUMMARY_H_
