#include "mpi_group/collectives/all_gather.h"

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/ring_pass.h"

namespace hooke {

absl::Status RingAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                           const Call& call) {
  const int n = transport.size();
  // The second half of a ring all-reduce, in which values are only copied.
  return PassAroundRing(transport, values, parts, {n - 1, 2 * (n - 1)}, ReduceOp::kSum, call);
}

absl::Status CheckParts(absl::Span<const ValueRange> parts, int ranks, uint64_t values) {
  if (parts.size() != static_cast<size_t>(ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a call in parts takes one part per rank: ", ranks, ", not ", parts.size()));
  }
  uint64_t previous_end = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValueRange part = parts[i];
    if (part.begin < previous_end || part.end < part.begin || part.end > values) {
      return absl::InvalidArgumentError(absl::StrCat("part ", i, " is [", part.begin, ", ", part.end,
                                                     "); it must begin at or after ", previous_end,
                                                     " and end at or before ", values));
    }
    previous_end = part.end;
  }
  return absl::OkStatus();
}

absl::Status CheckRoot(int root, int ranks) {
  if (root >= 0 && root < ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("root ", root, ": the group has ", ranks, " ranks"));
}

}  // namespace hooke
