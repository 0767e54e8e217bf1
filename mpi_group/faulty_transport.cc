#include "mpi_group/faulty_transport.h"

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

  absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) override {
    if (faults_.close_at == exchanges_++) transport_.reset();
    if (transport_ == nullptr) return absl::UnavailableError("this rank's transport is closed, as its faults demand");
    const bool late = Happens(faults_.delay_probability);
    const bool lost = Happens(faults_.drop_probability);
    if (outgoing.bytes.empty()) return transport_->Receive(incoming, deadline);
    if (late) absl::SleepFor(std::min(faults_.delay, deadline - absl::Now()));
    if (lost) return transport_->Receive(incoming, deadline);
    return transport_->Exchange(outgoing, incoming, deadline);
  }

 private:
  bool Happens(double probability) { return std::uniform_real_distribution<double>(0, 1)(random_) < probability; }

  const Faults faults_;
  const int rank_;
  const int size_;
  std::unique_ptr<Transport> transport_;
  std::mt19937_64 random_;
  uint64_t exchanges_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeFaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults) {
  return std::make_unique<FaultyTransport>(std::move(transport), faults);
}

}  // namespace hooke
