#include "mpi_group/groups/mpi_group.h"

#include <utility>

#include "mpi_group/groups/transport_group.h"
#include "mpi_group/mpi/mpi_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<Group>> MakeMpiGroup(MpiSession& session, const GroupOptions& options) {
  const auto make = [&session](absl::Time deadline) {
    MpiTransportOptions transport_options;
    transport_options.deadline = deadline;
    return MakeMpiTransport(session, transport_options);
  };
  NewTransport another = [&session, make](absl::Time deadline) -> absl::StatusOr<std::unique_ptr<Transport>> {
    if (session.concurrent()) return make(deadline);
    return absl::FailedPreconditionError(
        "MPI was not started for several threads: set MpiSession::Options::concurrent");
  };
  absl::StatusOr<std::unique_ptr<Transport>> transport = make(SteadyNow() + options.deadline);
  if (!transport.ok()) return transport.status();
  return MakeTransportGroup(*std::move(transport), options, std::move(another));
}

}  // namespace hooke
