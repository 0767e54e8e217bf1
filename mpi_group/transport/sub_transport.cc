#include "mpi_group/transport/sub_transport.h"

#include <algorithm>
#include <utility>

namespace hooke {
namespace {

class SubTransport : public Transport {
 public:
  SubTransport(Transport& transport, std::vector<int> ranks)
      : transport_(transport),
        ranks_(std::move(ranks)),
        rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), transport.rank()) - ranks_.begin())) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    // This comes before the rank is looked up, because an empty message may name any rank.
    if (outgoing.bytes.empty()) return Ticket();
    return transport_.StartSend({ranks_[outgoing.to], outgoing.bytes});
  }
  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    if (incoming.bytes.empty()) return Ticket();
    return transport_.StartReceive({ranks_[incoming.from], incoming.bytes});
  }
  absl::Status Wait(Ticket ticket, absl::Time deadline) override { return transport_.Wait(ticket, deadline); }
  bool IsDone(Ticket ticket) override { return transport_.IsDone(ticket); }

  void Begin(const CallLabel& label, absl::Time now) override { transport_.Begin(label, now); }
  absl::Status CheckNotices() override { return transport_.CheckNotices(); }
  void HearLost(int rank) override { transport_.HearLost(ranks_[rank]); }
  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    return transport_.Settle(failure, until);
  }

 private:
  Transport& transport_;
  const std::vector<int> ranks_;
  const int rank_;
};

}  // namespace

std::unique_ptr<Transport> MakeSubTransport(Transport& transport, std::vector<int> ranks) {
  return std::make_unique<SubTransport>(transport, std::move(ranks));
}

}  // namespace hooke
