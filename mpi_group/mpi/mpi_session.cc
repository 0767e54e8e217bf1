#include "mpi_group/mpi/mpi_session.h"

#include <mpi.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "mpi_group/mpi/mpi_wait.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<MpiSession>> MpiSession::Start(const Options& options) {
  const int wanted = options.concurrent ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
  int provided = MPI_THREAD_SINGLE;
  absl::Status status = MpiStatus(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
  if (!status.ok()) return status;
  // Without this MPI would abort the process on an error.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < wanted) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this MPI library offers no ", options.concurrent ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SERIALIZED",
        "; install one built with threads"));
  }
  int rank = 0;
  int size = 0;
  status.Update(MpiStatus(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
  status.Update(MpiStatus(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
  if (!status.ok()) return status;
  return std::unique_ptr<MpiSession>(new MpiSession(options, rank, size));
}

MpiSession::~MpiSession() {
  if (!finished_) Finish().IgnoreError();
}

absl::Status MpiSession::Finish() {
  finished_ = true;
  if (failed_) return absl::FailedPreconditionError("MPI failed before; end by ExitWithoutFinalize");
  MPI_Request all_here = MPI_REQUEST_NULL;
  absl::Status status = MpiStatus(MPI_Ibarrier(MPI_COMM_WORLD, &all_here), "MPI_Ibarrier");
  if (!status.ok()) return status;
  const absl::StatusOr<bool> met = AwaitAll(absl::MakeSpan(&all_here, 1), {}, SteadyNow() + options_.finalize_deadline);
  if (!met.ok()) return met.status();
  if (!*met) {
    return absl::DeadlineExceededError(absl::StrCat("ending MPI: not all ", size_, " ranks came within ",
                                                    absl::FormatDuration(options_.finalize_deadline)));
  }
  return MpiStatus(MPI_Finalize(), "MPI_Finalize");
}

void MpiSession::ExitWithoutFinalize(int code) {
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace hooke
