#include "mpi_group/transport/virtual_network.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/transport/in_process_transport.h"

namespace hooke {
namespace {

// A message is known by its peer and by how many messages of the pair came before it.
using Name = std::pair<int, uint64_t>;

// The start times of the messages to one rank that it has not taken yet.
class Arrivals {
 public:
  void Add(const Name& message, double start) {
    absl::MutexLock lock(&mutex_);
    starts_[message] = start;
  }
  double Take(const Name& message) {
    absl::MutexLock lock(&mutex_);
    const auto found = starts_.find(message);
    const double start = found->second;
    starts_.erase(found);
    return start;
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<Name, double> starts_ ABSL_GUARDED_BY(mutex_);
};

using ArrivalsOfAll = std::vector<Arrivals>;

class CountingClock : public VirtualTransport {
 public:
  CountingClock(std::unique_ptr<Transport> transport, const VirtualNetwork& network,
                std::shared_ptr<ArrivalsOfAll> arrivals)
      : VirtualTransport(std::move(transport)), network_(network), arrivals_(std::move(arrivals)) {}

  double now() const override { return now_; }
  void Restart() override { now_ = out_free_ = in_free_ = 0; }

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (outgoing.bytes.empty()) return ForwardingTransport::StartSend(outgoing);
    const double start = std::max(now_, out_free_);
    out_free_ = start + Busy(outgoing.bytes.size());
    // Notes the start time before the message is sent, so that the receiver finds it.
    (*arrivals_)[outgoing.to].Add({rank(), sent_[outgoing.to]++}, start);
    absl::StatusOr<Ticket> ticket = ForwardingTransport::StartSend(outgoing);
    if (ticket.ok()) under_way_[ticket->slot] = {-1, 0, 0, out_free_};
    return ticket;
  }

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    absl::StatusOr<Ticket> ticket = ForwardingTransport::StartReceive(incoming);
    if (!ticket.ok() || incoming.bytes.empty()) return ticket;
    under_way_[ticket->slot] = {incoming.from, received_[incoming.from]++, Busy(incoming.bytes.size()), 0};
    return ticket;
  }

  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    absl::Status status = ForwardingTransport::Wait(ticket, deadline);
    if (!status.ok() || ticket.slot < 0) return status;
    const Message& message = under_way_[ticket.slot];
    if (message.from < 0) {
      now_ = std::max(now_, message.left);
      return status;
    }
    const double start = (*arrivals_)[rank()].Take({message.from, message.number});
    in_free_ = std::max(start + network_.link.latency, in_free_) + message.busy;
    now_ = std::max(now_, in_free_);
    return status;
  }

 private:
  struct Message {
    int from = -1;  // The sender; -1 if this rank sends the message.
    // If this rank receives the message: how many came from that rank before, and how long it occupies the link.
    uint64_t number = 0;
    double busy = 0;
    // If this rank sends the message: the time at which it has left.
    double left = 0;
  };

  double Busy(size_t bytes) const {
    return network_.link.overhead + network_.link.per_byte * network_.bytes_per_byte * static_cast<double>(bytes);
  }

  const VirtualNetwork network_;
  const std::shared_ptr<ArrivalsOfAll> arrivals_;  // Indexed by receiver.
  double now_ = 0;
  double out_free_ = 0;
  double in_free_ = 0;
  absl::flat_hash_map<int, uint64_t> sent_;      // The number of messages to each rank.
  absl::flat_hash_map<int, uint64_t> received_;  // The number of receives started from each rank.
  absl::flat_hash_map<int, Message> under_way_;  // By Ticket::slot.
};

}  // namespace

std::vector<std::unique_ptr<VirtualTransport>> MakeVirtualTransports(int n, const VirtualNetwork& network) {
  const auto arrivals = std::make_shared<ArrivalsOfAll>(n);
  std::vector<std::unique_ptr<VirtualTransport>> transports;
  transports.reserve(n);
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(n)) {
    transports.push_back(std::make_unique<CountingClock>(std::move(transport), network, arrivals));
  }
  return transports;
}

}  // namespace hooke
