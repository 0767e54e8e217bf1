#ifndef HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_
#define HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_

// Which collective a rank is in, as plain values: ranks whose labels differ do not belong together. Filled by the group
// before each collective, which costs nothing that would be measured; made into text only for an error.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "mpi_group/data_type.h"

namespace hooke {

struct CallLabel {
  uint64_t number = 0;          // Of the group's calls on this rank, counted from 1. 0: none so far.
  absl::string_view operation;  // "all-reduce"; of static duration.
  uint64_t values = 0;
  std::optional<DataType> type = std::nullopt;  // Without it `values` are bytes.
  std::optional<ReduceOp> op = std::nullopt;
  int root = -1;
  // Stands for what else the ranks must agree on, as the parts of an all-gather; 0 for nothing.
  uint64_t detail = 0;
  bool shared = false;  // The values lie in an arena of the group's.

  // "call 17: all-reduce (sum) of 1000 float32"
  std::string Text() const;

  // The same on all ranks for the same label, and in all likelihood for no other.
  uint32_t Fingerprint() const;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_CALL_LABEL_H_
