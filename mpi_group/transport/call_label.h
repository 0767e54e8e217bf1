#ifndef HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_
#define HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_

// Describes the collective that a rank is in. Ranks whose labels differ are in different calls, which is an error.
// Filling a label before each collective costs next to nothing; it becomes text only for an error.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "mpi_group/data_type.h"

namespace hooke {

struct CallLabel {
  uint64_t number = 0;          // The call's number in the group on this rank, from 1; 0: no call yet.
  absl::string_view operation;  // "all-reduce"; has static lifetime.
  uint64_t values = 0;
  std::optional<DataType> type = std::nullopt;  // If empty, `values` counts bytes.
  std::optional<ReduceOp> op = std::nullopt;
  int root = -1;
  // A hash of anything else that ranks must agree on, such as the parts of an all-gather; 0 for nothing.
  uint64_t detail = 0;
  bool shared = false;  // The values lie in an arena of the group.

  // The label in words, such as "call 17: all-reduce (sum) of 1000 float32".
  std::string Text() const;

  // A hash of the label: equal for equal labels, almost certainly different for others.
  uint32_t Fingerprint() const;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_
