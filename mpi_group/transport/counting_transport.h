#ifndef HOOKE_MPI_GROUP_TRANSPORT_COUNTING_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_COUNTING_TRANSPORT_H_

// For tests: counts the messages that a rank sends through another transport, and their bytes.

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct Traffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

class CountingTransport : public ForwardingTransport {
 public:
  explicit CountingTransport(std::unique_ptr<Transport> transport) : ForwardingTransport(std::move(transport)) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (!outgoing.bytes.empty()) ++sent_.messages;
    sent_.bytes += outgoing.bytes.size();
    return ForwardingTransport::StartSend(outgoing);
  }

  // Only the thread that uses the transport may ask, or others when it has ended.
  const Traffic& sent() const { return sent_; }

 private:
  Traffic sent_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_COUNTING_TRANSPORT_H_
