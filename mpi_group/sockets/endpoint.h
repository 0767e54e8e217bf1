#ifndef HOOKE_MPI_GROUP_SOCKETS_ENDPOINT_H_
#define HOOKE_MPI_GROUP_SOCKETS_ENDPOINT_H_

// Where a rank listens, as it tells the ranks that connect to it. Its record has 11 bytes, and 10 for each IPv4 or 22
// for each IPv6 address.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpi_group/sockets/host_addresses.h"

namespace hooke {

struct Endpoint {
  static constexpr size_t kAddressesMax = 16;  // Further addresses are left out of the record.

  uint64_t identity = 0;  // Hash of MeshOptions::identity.
  uint16_t port = 0;
  std::vector<HostAddress> addresses;
};

std::string RecordOf(const Endpoint& endpoint);
// Reads `count` records that follow each other. INTERNAL if the text is anything else.
absl::StatusOr<std::vector<Endpoint>> ReadEndpoints(absl::string_view records, size_t count);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_ENDPOINT_H_
