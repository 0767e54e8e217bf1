#include "worker/training/gradient_buckets.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "mpi_group/issue_order/bucket_plan.h"

namespace hooke {
namespace {

std::vector<TypedBucket> BucketsOf(DataType type, absl::Span<const TypedGradient> gradients, uint64_t bucket_bytes) {
  std::vector<size_t> parameters;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].type != type) continue;
    parameters.push_back(i);
    values.push_back(gradients[i].bytes.size() / SizeOf(type));
  }
  std::vector<TypedBucket> buckets;
  for (const Bucket& planned : PlanBuckets(values, std::max<uint64_t>(bucket_bytes / SizeOf(type), 1))) {
    TypedBucket bucket = {type, {}};
    for (size_t i = planned.parameters; i-- > 0;) bucket.parameters.push_back(parameters[planned.first_parameter + i]);
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace

std::vector<TypedBucket> PlanTypedBuckets(absl::Span<const TypedGradient> gradients, uint64_t bucket_bytes) {
  std::vector<TypedBucket> with_loss = BucketsOf(DataType::kFloat32, gradients, bucket_bytes);
  TypedBucket last;
  if (!with_loss.empty()) {
    last = std::move(with_loss.back());
    with_loss.pop_back();
  }
  std::vector<TypedBucket> buckets = std::move(with_loss);
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    std::vector<TypedBucket> narrow = BucketsOf(type, gradients, bucket_bytes);
    std::move(narrow.begin(), narrow.end(), std::back_inserter(buckets));
  }
  // Backward goes from the last parameter to the first, so a bucket is complete with its first parameter.
  std::sort(buckets.begin(), buckets.end(),
            [](const TypedBucket& a, const TypedBucket& b) { return a.parameters.back() > b.parameters.back(); });
  buckets.push_back(std::move(last));
  return buckets;
}

TensorList ListOf(absl::Span<const TypedGradient> gradients, const TypedBucket& bucket) {
  std::vector<absl::Span<char>> pieces;
  for (size_t i = bucket.parameters.size(); i-- > 0;) {
    const absl::Span<char> next = gradients[bucket.parameters[i]].bytes;
    if (!pieces.empty() && pieces.back().end() == next.begin()) {
      pieces.back() = {pieces.back().data(), pieces.back().size() + next.size()};
    } else {
      pieces.push_back(next);
    }
  }
  return TensorList(bucket.type, pieces);
}

}  // namespace hooke
