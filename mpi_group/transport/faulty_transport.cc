#include "mpi_group/transport/faulty_transport.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/time/clock.h"

namespace hooke {
namespace {

class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults)
      : faults_(faults),
        rank_(transport->rank()),
        size_(transport->size()),
        transport_(std::move(transport)),
        random_(faults.seed + 0x9E3779B97F4A7C15u * (rank_ + 1)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (faults_.close_at == sends_++) transport_.reset();
    if (transport_ == nullptr) return Closed();
    const bool late = Happens(faults_.delay_probability);
    const bool lost = Happens(faults_.drop_probability);
    if (outgoing.bytes.empty()) return Ticket();
    if (late) absl::SleepFor(faults_.delay);
    // An empty ticket counts as done, so the sender believes the message sent.
    if (lost) return Ticket();
    return transport_->StartSend(outgoing);
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    if (transport_ == nullptr) return Closed();
    return transport_->StartReceive(incoming);
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (transport_ == nullptr) return Closed();
    return transport_->Wait(ticket, deadline);
  }

  bool IsDone(Ticket ticket) override { return transport_ == nullptr || transport_->IsDone(ticket); }

  void Begin(const CallLabel& label, absl::Time now) override {
    if (transport_ != nullptr) transport_->Begin(label, now);
  }

  absl::Status CheckNotices() override { return transport_ == nullptr ? Closed() : transport_->CheckNotices(); }

  void HearLost(int rank) override {
    if (transport_ != nullptr) transport_->HearLost(rank);
  }

  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    return transport_ == nullptr ? failure : transport_->Settle(failure, until);
  }

 private:
  static absl::Status Closed() {
    return absl::UnavailableError("this rank's transport is closed, as its faults demand");
  }

  bool Happens(double probability) { return std::uniform_real_distribution<double>(0, 1)(random_) < probability; }

  const Faults faults_;
  const int rank_;
  const int size_;
  std::unique_ptr<Transport> transport_;
  std::mt19937_64 random_;
  uint64_t sends_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeFaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults) {
  return std::make_unique<FaultyTransport>(std::move(transport), faults);
}

}  // namespace hooke
