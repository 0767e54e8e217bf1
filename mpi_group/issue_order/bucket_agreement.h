#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_

// Before the first bucket travels, all ranks make sure that they mean the same buckets. Used by MakeIssueOrder.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Something that all ranks must have set alike: how a message calls it, and its value.
struct AgreedSetting {
  absl::string_view name;
  int64_t value = 0;
};

// Collective. OK on all ranks, or INVALID_ARGUMENT on all ranks with one message, which names the lowest rank that
// differs from rank 0 and how: in a setting, or in a bucket's size or type. All ranks pass as many settings, in one
// order. Other errors are the group's.
absl::Status AgreeOnBuckets(Group& group, absl::Span<const AgreedSetting> settings,
                            absl::Span<const TensorList> buckets);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_
