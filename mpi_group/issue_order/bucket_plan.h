#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_

// Which gradients travel together. A bucket is a run of neighbouring parameters, so its gradients are one contiguous
// range of the arena and nothing is packed. Small buckets leave early, large ones waste less on each call. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

struct Bucket {
  size_t first_parameter = 0;
  size_t parameters = 0;
  ValueRange values;  // Of the vector of all gradients.
};

// The buckets of a model whose parameter i has parameter_values[i] values, in the order in which backward makes them
// ready: the last parameters come first. A bucket takes whole parameters until it holds at least `bucket_values` (at
// least 1); what is left at the end, the first layers, is the last bucket. Every parameter is in exactly one. No
// parameters: no buckets.
std::vector<Bucket> PlanBuckets(absl::Span<const uint64_t> parameter_values, uint64_t bucket_values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_
