#ifndef HOOKE_WORKER_TRAINING_GRADIENT_BUCKETS_H_
#define HOOKE_WORKER_TRAINING_GRADIENT_BUCKETS_H_

// Decides which gradients travel together if a model has gradients of several types. A collective takes values of one
// type. So each type has buckets of its own, as PlanBuckets (bucket_plan.h) makes them. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Where a parameter's gradient lies: a whole number of values of `type`.
struct TypedGradient {
  DataType type = DataType::kFloat32;
  absl::Span<char> bytes;
};

// Gradients of one type that travel together.
struct TypedBucket {
  DataType type = DataType::kFloat32;
  std::vector<size_t> parameters;  // Descending.
};

// Plans the buckets. Each closes when its gradients have `bucket_bytes` bytes. They come in the order in which backward
// completes them, except that the last bucket is of float32. It may have no parameters; it travels with the loss. Every
// parameter is in exactly one bucket.
std::vector<TypedBucket> PlanTypedBuckets(absl::Span<const TypedGradient> gradients, uint64_t bucket_bytes);

// Returns the bucket's gradients as one list. Neighbours in memory are one piece.
TensorList ListOf(absl::Span<const TypedGradient> gradients, const TypedBucket& bucket);

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_GRADIENT_BUCKETS_H_
