#ifndef HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_
#define HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_

// How ranks of an MpiTransport tell one another that a collective failed: statements on a communicator of their own.
// While nothing fails there are no messages on it. Used by the thread that uses the transport.

#include <mpi.h>

#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/settlement.h"

namespace hooke {

class MpiNotices {
 public:
  // The communicator is its caller's, outlives it, and carries nothing else.
  MpiNotices(MPI_Comm communicator, int rank, int size)
      : communicator_(communicator), rank_(rank), size_(size), settlement_(size) {}
  MpiNotices(const MpiNotices&) = delete;
  MpiNotices& operator=(const MpiNotices&) = delete;

  // Transport::CheckNotices; INTERNAL if MPI fails.
  absl::Status Check();
  // Transport::Settle, at the first call; the same verdict at later ones. Statements that not all ranks have taken when
  // it returns stay lent to MPI.
  absl::Status Settle(const CallHistory& history, const absl::Status& failure, absl::Time until);

 private:
  absl::Status HearAll();
  absl::Status Tell(const Statement& statement);
  bool AllToldAreDone();

  const MPI_Comm communicator_;
  const int rank_;
  const int size_;
  Settlement settlement_;
  absl::Status verdict_;        // OK before Settle.
  std::deque<Statement> told_;  // MPI reads them: they stay where they are.
  std::vector<MPI_Request> telling_;
  std::deque<Statement> heard_;  // MPI writes them.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_
