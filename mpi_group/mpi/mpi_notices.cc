#include "mpi_group/mpi/mpi_notices.h"

#include <algorithm>
#include <type_traits>

#include "absl/time/clock.h"
#include "mpi_group/mpi/mpi_wait.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

constexpr int kTag = 0;
// Time for the rest of a statement that has begun to arrive.
constexpr absl::Duration kTransfer = absl::Seconds(1);
constexpr absl::Duration kNap = absl::Microseconds(200);
// Time for the verdict to leave this rank. Ranks that are slower to take it conclude without it.
constexpr absl::Duration kLinger = absl::Milliseconds(100);

static_assert(std::is_trivially_copyable_v<Statement>, "statements travel as bytes");

}  // namespace

absl::Status MpiNotices::Check() {
  absl::Status status = HearAll();
  return status.ok() ? settlement_.FirstReport() : status;
}

absl::Status MpiNotices::HearAll() {
  while (true) {
    int arrived = 0;
    MPI_Status envelope;
    absl::Status status =
        MpiStatus(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &arrived, &envelope), "MPI_Iprobe");
    if (!status.ok() || arrived == 0) return status;
    heard_.emplace_back();
    MPI_Request taken = MPI_REQUEST_NULL;
    status = MpiStatus(MPI_Irecv(&heard_.back(), sizeof(Statement), MPI_BYTE, envelope.MPI_SOURCE, envelope.MPI_TAG,
                                 communicator_, &taken),
                       "MPI_Irecv");
    if (!status.ok()) return status;
    // The message is short, so all of it has arrived or is about to. Still no wait may be endless.
    const absl::StatusOr<bool> done = AwaitAll(absl::MakeSpan(&taken, 1), {}, SteadyNow() + kTransfer);
    if (!done.ok()) return done.status();
    if (!*done) return absl::DeadlineExceededError(absl::StrCat("rank ", envelope.MPI_SOURCE, " died while telling"));
    settlement_.Hear(envelope.MPI_SOURCE, heard_.back());
  }
}

// Tells all peers, even if telling one of them fails; returns the first error.
absl::Status MpiNotices::Tell(const Statement& statement) {
  told_.push_back(statement);
  absl::Status first;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    telling_.push_back(MPI_REQUEST_NULL);
    first.Update(
        MpiStatus(MPI_Isend(&told_.back(), sizeof(Statement), MPI_BYTE, peer, kTag, communicator_, &telling_.back()),
                  "MPI_Isend"));
  }
  return first;
}

bool MpiNotices::AllToldAreDone() {
  return std::all_of(telling_.begin(), telling_.end(), [](MPI_Request& request) {
    int done = 0;
    return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
}

// If MPI fails here as well, the verdict follows from the statements heard so far.
absl::Status MpiNotices::Settle(const CallHistory& history, const absl::Status& failure, absl::Time until) {
  if (!verdict_.ok()) return verdict_;
  const Statement own = FailureStatement(history, failure, SteadyNow());
  settlement_.Hear(rank_, own);
  Tell(own).IgnoreError();  // Ranks that it does not reach notice the failure at their own deadlines.
  absl::Status status;
  while (status.ok()) {
    status = HearAll();
    const bool concluded = settlement_.has_verdict() || (settlement_.complete() && settlement_.IsSpeaker(rank_));
    if (concluded || SteadyNow() >= until) break;
    absl::SleepFor(kNap);
  }
  if (!settlement_.has_verdict()) {
    const Statement verdict = VerdictStatement(settlement_.Verdict());
    settlement_.Hear(rank_, verdict);
    status.Update(Tell(verdict));
  }
  verdict_ = settlement_.Verdict();
  for (const absl::Time end = SteadyNow() + kLinger; status.ok() && !AllToldAreDone() && SteadyNow() < end;) {
    absl::SleepFor(kNap);
  }
  return verdict_;
}

}  // namespace hooke
