#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_

// A check before the first bucket travels: all ranks must have the same buckets and settings.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// A setting that must be equal on all ranks: its name in error messages, and its value.
struct AgreedSetting {
  absl::string_view name;
  int64_t value = 0;
};

// Collective. Returns OK on all ranks, or INVALID_ARGUMENT on all ranks with the same message. The message names the
// lowest rank that differs from rank 0, and the difference: in a setting, or in a bucket's size or type. All ranks pass
// equally many settings, in the same order. Other errors are those of the group.
absl::Status AgreeOnBuckets(Group& group, absl::Span<const AgreedSetting> settings,
                            absl::Span<const TensorList> buckets);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_BUCKET_AGREEMENT_H_
