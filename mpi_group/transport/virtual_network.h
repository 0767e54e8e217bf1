#ifndef HOOKE_MPI_GROUP_TRANSPORT_VIRTUAL_NETWORK_H_
#define HOOKE_MPI_GROUP_TRANSPORT_VIRTUAL_NETWORK_H_

// A network that costs virtual time, for tests: it tells how long collectives would take among many ranks. Messages go
// through the in-process transport. Each rank has a clock of its own, and only messages move it. Costs are those of
// time_model.h:
//
// - A message occupies its sender's link for overhead + bytes * per_byte. It starts when it is sent or when the link is
//   free, whichever is later. The sender goes on meanwhile; waiting for the message waits until it has left.
// - The receiver's link is occupied for as long. That begins `latency` after the message started, or when the link is
//   free of the message that the receiver took last, whichever is later. A receiver that waits for the message sets its
//   clock, if it is behind, to the time at which its link is free again.
// - Everything else takes no time: arithmetic, shared memory, the network between the links.
//
// The clocks depend only on what each rank sends and waits for, in its own order. They do not depend on how the ranks'
// threads are scheduled, so the same program gives the same times.

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_group/time_model.h"
#include "mpi_group/transport/forwarding_transport.h"

namespace hooke {

class VirtualTransport : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  // The rank's clock, in seconds since its creation or the last Restart().
  virtual double now() const = 0;
  // Sets the rank's clock to 0, and its link to free. No message of the rank may be under way.
  virtual void Restart() = 0;
};

struct VirtualNetwork {
  LinkCost link;
  // Each byte counts as so many. So a test of many ranks and many bytes needs less memory.
  double bytes_per_byte = 1;
};

// Makes the transports of n ranks on one such network; element r is rank r's. One thread at a time uses a transport.
std::vector<std::unique_ptr<VirtualTransport>> MakeVirtualTransports(int n, const VirtualNetwork& network);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_VIRTUAL_NETWORK_H_
