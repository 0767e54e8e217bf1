#ifndef HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_

// A transport with faults, for tests: some messages are late, some never leave, and from some message on the rank is
// gone. The same seed gives the same faults at the same messages.

#include <cstdint>
#include <memory>
#include <optional>

#include "mpi_group/transport/transport.h"

namespace hooke {

struct Faults {
  uint64_t seed = 1;
  // Of each outgoing message: the chance that it is held back for `delay` first, and that it is lost while its sender
  // believes it sent.
  double delay_probability = 0;
  absl::Duration delay = absl::Milliseconds(1);
  double drop_probability = 0;
  // The exchange, counted from 0, at which the rank dies: its transport is destroyed, the call returns UNAVAILABLE.
  std::optional<uint64_t> close_at;
};

std::unique_ptr<Transport> MakeFaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_
