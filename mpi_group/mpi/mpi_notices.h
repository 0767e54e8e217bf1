#ifndef HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_
#define HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_

// Notices: statements by which ranks of an MpiTransport tell one another that a collective failed. They travel on a
// communicator of their own, which carries nothing while nothing fails. Only the thread that uses the transport may use
// an MpiNotices.

#include <mpi.h>

#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/settlement.h"

namespace hooke {

class MpiNotices {
 public:
  // The caller owns the communicator, keeps it longer than this object, and sends nothing else on it.
  MpiNotices(MPI_Comm communicator, int rank, int size)
      : communicator_(communicator), rank_(rank), size_(size), settlement_(size) {}
  MpiNotices(const MpiNotices&) = delete;
  MpiNotices& operator=(const MpiNotices&) = delete;

  // Does what Transport::CheckNotices does; INTERNAL if MPI fails.
  absl::Status Check();
  // See Transport::HearLost.
  void HearLost(int rank) { settlement_.HearLost(rank); }
  // Does what Transport::Settle does, at the first call; later calls return the same verdict. When it returns, MPI may
  // still read statements that some rank has not received.
  absl::Status Settle(const CallHistory& history, const absl::Status& failure, absl::Time until);

 private:
  absl::Status HearAll();
  absl::Status Tell(const Statement& statement);
  bool AllToldAreDone();

  const MPI_Comm communicator_;
  const int rank_;
  const int size_;
  Settlement settlement_;
  absl::Status verdict_;        // OK until Settle has concluded.
  std::deque<Statement> told_;  // A deque, because MPI reads the statements in place.
  std::vector<MPI_Request> telling_;
  std::deque<Statement> heard_;  // A deque, because MPI writes the statements in place.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_NOTICES_H_
