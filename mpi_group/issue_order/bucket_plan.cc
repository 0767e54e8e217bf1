#include "mpi_group/issue_order/bucket_plan.h"

#include <numeric>

namespace hooke {

std::vector<Bucket> PlanBuckets(absl::Span<const uint64_t> parameter_values, uint64_t bucket_values) {
  std::vector<Bucket> buckets;
  uint64_t begin = std::accumulate(parameter_values.begin(), parameter_values.end(), uint64_t{0});
  bool open = false;
  // The loop runs from the last parameter to the first, because backward makes their gradients ready in this order.
  for (size_t i = parameter_values.size(); i-- > 0;) {
    if (!open) buckets.push_back({i + 1, 0, {begin, begin}});
    Bucket& bucket = buckets.back();
    begin -= parameter_values[i];
    bucket.first_parameter = i;
    ++bucket.parameters;
    bucket.values.begin = begin;
    open = bucket.values.size() < bucket_values;
  }
  return buckets;
}

}  // namespace hooke
