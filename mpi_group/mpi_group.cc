#include "mpi_group/mpi_group.h"

#include <utility>

#include "absl/time/clock.h"
#include "mpi_group/mpi_transport.h"
#include "mpi_group/transport_group.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<Group>> MakeMpiGroup(MpiSession& session, const GroupOptions& options) {
  MpiTransportOptions transport_options;
  transport_options.deadline = absl::Now() + options.deadline;
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeMpiTransport(session, transport_options);
  if (!transport.ok()) return transport.status();
  return MakeTransportGroup(*std::move(transport), options);
}

}  // namespace hooke
