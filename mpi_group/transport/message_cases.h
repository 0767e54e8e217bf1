#ifndef HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_
#define HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_

// A check of messages that the tests of several transports share.

#include <cstddef>

#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Each rank sends `count` messages of various sizes to each peer. Every `long_each`-th has at least `long_bytes` bytes.
struct MessageCases {
  int count = 1;
  int long_each = 5;
  size_t long_bytes = 0;
};

// All ranks call it. It starts all messages, waits for them in another order, and checks what has arrived.
void CheckMessagesWithPeers(Transport& transport, const MessageCases& cases, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_
