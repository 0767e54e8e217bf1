#include "mpi_group/transport/transport.h"

namespace hooke {

absl::Status Transport::Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) {
  const absl::StatusOr<Ticket> received = StartReceive(incoming);
  if (!received.ok()) return received.status();
  const absl::StatusOr<Ticket> sent = StartSend(outgoing);
  if (!sent.ok()) return sent.status();
  absl::Status status = Wait(*received, deadline);
  return status.ok() ? Wait(*sent, deadline) : status;
}

}  // namespace hooke
