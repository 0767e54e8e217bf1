#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_

// Decides which gradients travel together. A bucket is a run of neighbouring parameters, so its gradients are one
// contiguous range of the arena and nothing has to be packed. Small buckets start early, large ones have less overhead.
// Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

struct Bucket {
  size_t first_parameter = 0;
  size_t parameters = 0;
  ValueRange values;  // The bucket's range in the vector of all gradients.
};

// Plans the buckets of a model whose parameter i has parameter_values[i] values. They come in the order in which
// backward makes them ready: the last parameters first. A bucket takes whole parameters until it has at least
// `bucket_values` values (at least 1). The rest, the first layers, is the last bucket. Every parameter is in exactly
// one bucket. Without parameters there are no buckets.
std::vector<Bucket> PlanBuckets(absl::Span<const uint64_t> parameter_values, uint64_t bucket_values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_PLAN_H_
