#ifndef HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_
#define HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_

// What every transport has to do with messages, for the tests of each.

#include <cstddef>

#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// With each peer, each way: `count` messages of sizes that differ, every `long_each`-th of `long_bytes` or some more.
struct MessageCases {
  int count = 1;
  int long_each = 5;
  size_t long_bytes = 0;
};

// Called by all ranks. Starts all messages, waits for them in an order of its own, and looks at what came.
void CheckMessagesWithPeers(Transport& transport, const MessageCases& cases, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_MESSAGE_CASES_H_
