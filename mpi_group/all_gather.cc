#include "mpi_group/all_gather.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {

// In step s a rank passes on what it received in step s-1; in step 0 its own part.
absl::Status RingAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                           const Call& call) {
  const int n = transport.size();
  const int rank = transport.rank();
  const int next = (rank + 1) % n;
  const int previous = (rank + n - 1) % n;
  for (int step = 0; step < n - 1; ++step) {
    const ValueRange out = parts[(rank + n - step) % n];
    const ValueRange in = parts[(rank + n - step - 1) % n];
    const uint64_t chunks = std::max(ChunkCount(out, call.chunk_values), ChunkCount(in, call.chunk_values));
    for (uint64_t i = 0; i < chunks; ++i) {
      const TensorList outgoing = values.Slice(Chunk(out, i, call.chunk_values));
      const TensorList incoming = values.Slice(Chunk(in, i, call.chunk_values));
      const absl::Span<float> received = ContiguousRoom(incoming, call.scratch.incoming);
      absl::Status status = transport.Exchange({next, BytesOf(ContiguousValues(outgoing, call.scratch.outgoing))},
                                               {previous, MutableBytesOf(received)}, call.deadline);
      if (!status.ok()) return status;
      if (incoming.pieces().size() > 1) Scatter(received, incoming);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParts(absl::Span<const ValueRange> parts, int ranks, uint64_t values) {
  if (parts.size() != static_cast<size_t>(ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-gather takes one part per rank: ", ranks, ", not ", parts.size()));
  }
  uint64_t previous_end = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValueRange part = parts[i];
    if (part.begin < previous_end || part.end < part.begin || part.end > values) {
      return absl::InvalidArgumentError(absl::StrCat("all-gather part ", i, " is [", part.begin, ", ", part.end,
                                                     "); it must begin at or after ", previous_end,
                                                     " and end at or before ", values));
    }
    previous_end = part.end;
  }
  return absl::OkStatus();
}

}  // namespace hooke
