#ifndef HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_

// A transport with faults, for tests: some messages are late, some are lost, and the rank may die. The same seed gives
// the same faults at the same messages.

#include <cstdint>
#include <memory>
#include <optional>

#include "mpi_group/transport/transport.h"

namespace hooke {

struct Faults {
  uint64_t seed = 1;
  // The chance of each outgoing message to be held back for `delay`.
  double delay_probability = 0;
  absl::Duration delay = absl::Milliseconds(1);
  // The chance of each outgoing message to be lost. Its sender believes that it was sent.
  double drop_probability = 0;
  // The rank dies at this call of StartSend, counted from 0: its transport is destroyed, and this and all later sends,
  // receives and waits return UNAVAILABLE.
  std::optional<uint64_t> close_at;
};

std::unique_ptr<Transport> MakeFaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_FAULTY_TRANSPORT_H_
