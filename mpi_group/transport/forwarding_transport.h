#ifndef HOOKE_MPI_GROUP_TRANSPORT_FORWARDING_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_FORWARDING_TRANSPORT_H_

// Forwards everything to another transport. Tests derive from it and override the calls that they want to see or
// change.

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override { return transport_->StartSend(outgoing); }
  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override { return transport_->StartReceive(incoming); }
  absl::Status Wait(Ticket ticket, absl::Time deadline) override { return transport_->Wait(ticket, deadline); }
  bool IsDone(Ticket ticket) override { return transport_->IsDone(ticket); }
  void Begin(const CallLabel& label, absl::Time now) override { transport_->Begin(label, now); }
  absl::Status CheckNotices() override { return transport_->CheckNotices(); }
  void HearLost(int rank) override { transport_->HearLost(rank); }
  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    return transport_->Settle(failure, until);
  }

 private:
  const std::unique_ptr<Transport> transport_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_FORWARDING_TRANSPORT_H_
