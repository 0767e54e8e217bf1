#ifndef HOOKE_MPI_GROUP_SOCKETS_OPEN_FILES_H_
#define HOOKE_MPI_GROUP_SOCKETS_OPEN_FILES_H_

// The limit on the number of files that a process has open. Each connection counts as one.

#include <cstdint>

#include "absl/status/status.h"

namespace hooke {

// Makes sure that this process may open `more` files besides those that are open. If its soft limit is too low, the
// soft limit is raised to the hard one. RESOURCE_EXHAUSTED if the hard limit is too low as well; the message says how
// many files are needed, the limit, and how to raise it. The soft limit then stays as it was.
absl::Status MakeRoomForFiles(uint64_t more);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_OPEN_FILES_H_
