#include "mpi_group/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpi_group/mpi_wait.h"

namespace hooke {
namespace {

constexpr int kTag = 0;  // The communicator is ours alone, and messages between two ranks do not overtake each other.

class MpiTransport : public Transport {
 public:
  MpiTransport(MpiSession& session, MPI_Comm communicator, uint64_t message_bytes_max)
      : session_(session), communicator_(communicator), message_bytes_max_(message_bytes_max) {}

  ~MpiTransport() override {
    if (!session_.failed()) MPI_Comm_free(&communicator_);
  }

  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }

  absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) override {
    const uint64_t bytes = std::max(outgoing.bytes.size(), incoming.bytes.size());
    for (uint64_t begin = 0; begin < bytes; begin += message_bytes_max_) {
      absl::Status status = ExchangeOne({outgoing.to, Part(outgoing.bytes, begin)},
                                        {incoming.from, Part(incoming.bytes, begin)}, deadline);
      if (status.ok()) continue;
      session_.MarkFailed();
      return status;
    }
    return absl::OkStatus();
  }

 private:
  // What of a message of any length travels as the one that begins here.
  template <typename Bytes>
  Bytes Part(Bytes bytes, uint64_t begin) const {
    return begin < bytes.size() ? bytes.subspan(begin, message_bytes_max_) : Bytes();
  }

  // After an error the requests are left as they are: the transport is unusable, and only MPI_Finalize, which will not
  // be called, would mind. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  absl::Status ExchangeOne(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) {
    MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Request& receive = requests[0];
    MPI_Request& send = requests[1];
    if (!incoming.bytes.empty()) {
      const int code = MPI_Irecv(incoming.bytes.data(), static_cast<int>(incoming.bytes.size()), MPI_BYTE,
                                 incoming.from, kTag, communicator_, &receive);
      if (code != MPI_SUCCESS) return MpiStatus(code, absl::StrCat("MPI_Irecv from rank ", incoming.from));
    }
    if (!outgoing.bytes.empty()) {
      const int code = MPI_Isend(outgoing.bytes.data(), static_cast<int>(outgoing.bytes.size()), MPI_BYTE, outgoing.to,
                                 kTag, communicator_, &send);
      if (code != MPI_SUCCESS) return MpiStatus(code, absl::StrCat("MPI_Isend to rank ", outgoing.to));
    }
    MPI_Status statuses[2];
    const absl::StatusOr<bool> done = AwaitAll(requests, absl::MakeSpan(statuses), deadline);
    if (!done.ok()) {
      return absl::Status(done.status().code(), absl::StrCat("exchanging with ranks ", outgoing.to, " (to) and ",
                                                             incoming.from, " (from): ", done.status().message()));
    }
    if (receive != MPI_REQUEST_NULL) return Waited(incoming.from, "receiving from");
    if (send != MPI_REQUEST_NULL) return Waited(outgoing.to, "sending to");
    return incoming.bytes.empty() ? absl::OkStatus() : CheckSize(statuses[0], incoming);
  }

  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

  // A longer message than expected is an error of MPI's; a shorter one is not.
  static absl::Status CheckSize(const MPI_Status& received, const Incoming& incoming) {
    int bytes = 0;
    absl::Status status = MpiStatus(MPI_Get_count(&received, MPI_BYTE, &bytes), "MPI_Get_count");
    if (!status.ok() || static_cast<uint64_t>(bytes) == incoming.bytes.size()) return status;
    return absl::InternalError(absl::StrCat("receiving from rank ", incoming.from, ": ", bytes, " bytes came where ",
                                            incoming.bytes.size(), " were expected; all ranks must call the same ",
                                            "operations with the same sizes"));
  }

  static absl::Status Waited(int peer, absl::string_view what) {
    return absl::DeadlineExceededError(absl::StrCat("waited for rank ", peer, " until the deadline (", what, " it)"));
  }

  MpiSession& session_;
  MPI_Comm communicator_;
  const uint64_t message_bytes_max_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(MpiSession& session, const MpiTransportOptions& options) {
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Request duplicated = MPI_REQUEST_NULL;
  absl::Status status = MpiStatus(MPI_Comm_idup(MPI_COMM_WORLD, &communicator, &duplicated), "MPI_Comm_idup");
  if (status.ok()) {
    const absl::StatusOr<bool> done = AwaitAll(absl::MakeSpan(&duplicated, 1), {}, options.deadline);
    status = done.status();
    if (status.ok() && !*done) {
      status = absl::DeadlineExceededError(absl::StrCat("making a communicator of ", session.size(),
                                                        " ranks: not all of them took part before the deadline"));
    }
  }
  if (status.ok()) {
    status = MpiStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  if (!status.ok()) {
    session.MarkFailed();
    return status;
  }
  return std::make_unique<MpiTransport>(session, communicator, options.message_bytes_max);
}

}  // namespace hooke
