#include "mpi_group/in_process_transport.h"

#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/transport_group.h"

namespace hooke {
namespace {

enum class Wait { kDone, kClosed, kDeadline, kWrongSize };

// The way from one rank to another. It holds at most one message: the sender's own memory, lent until the receiver has
// copied it.
class Channel {
 public:
  // The sender: lends a message, then waits until it is taken. Every Post is followed by an AwaitTaken, which ends the
  // loan in any case.
  void Post(absl::Span<const char> bytes) {
    absl::MutexLock lock(&mutex_);
    message_ = bytes;
    posted_ = true;
  }
  Wait AwaitTaken(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !posted_ || closed_; };
    mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline);
    if (!posted_) return Wait::kDone;
    posted_ = false;
    return closed_ ? Wait::kClosed : Wait::kDeadline;
  }

  // The receiver.
  Wait Take(absl::Span<char> bytes, absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return posted_ || closed_; };
    mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline);
    if (!posted_) return closed_ ? Wait::kClosed : Wait::kDeadline;
    if (message_.size() != bytes.size()) return Wait::kWrongSize;
    std::memcpy(bytes.data(), message_.data(), bytes.size());
    posted_ = false;
    return Wait::kDone;
  }

  // Either: nothing more will pass. A message that was posted before can still be taken.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  absl::Mutex mutex_;
  absl::Span<const char> message_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class Network {
 public:
  explicit Network(int n) : size_(n), channels_(static_cast<size_t>(n) * n) {}

  int size() const { return size_; }
  Channel& channel(int from, int to) { return channels_[static_cast<size_t>(from) * size_ + to]; }

 private:
  const int size_;
  std::vector<Channel> channels_;
};

absl::Status Result(Wait wait, absl::string_view what, int peer) {
  switch (wait) {
    case Wait::kDone:
      return absl::OkStatus();
    case Wait::kClosed:
      return absl::UnavailableError(absl::StrCat(what, " rank ", peer, ", which has left the group"));
    case Wait::kDeadline:
      return absl::DeadlineExceededError(absl::StrCat("waited for rank ", peer, " until the deadline (", what, " it)"));
    case Wait::kWrongSize:
      return absl::InternalError(absl::StrCat(what, " rank ", peer, ": its message has another size than this rank's; ",
                                              "all ranks must call the same operations with the same sizes"));
  }
  return absl::InternalError("unknown outcome of a wait");
}

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Network> network, int rank) : network_(std::move(network)), rank_(rank) {}

  ~InProcessTransport() override { Leave(); }

  int rank() const override { return rank_; }
  int size() const override { return network_->size(); }

  absl::Status Exchange(const Outgoing& outgoing, const Incoming& incoming, absl::Time deadline) override {
    absl::Status status;
    if (!outgoing.bytes.empty()) network_->channel(rank_, outgoing.to).Post(outgoing.bytes);
    if (!incoming.bytes.empty()) {
      Channel& channel = network_->channel(incoming.from, rank_);
      status = Result(channel.Take(incoming.bytes, deadline), "receiving from", incoming.from);
    }
    if (!outgoing.bytes.empty()) {
      // A failed receive ends the loan of the outgoing message at once: its receiver learns of this rank's failure soon
      // enough.
      const absl::Time until = status.ok() ? deadline : absl::InfinitePast();
      const Wait sent = network_->channel(rank_, outgoing.to).AwaitTaken(until);
      if (status.ok()) status = Result(sent, "sending to", outgoing.to);
    }
    if (!status.ok()) Leave();
    return status;
  }

 private:
  void Leave() {
    for (int peer = 0; peer < size(); ++peer) {
      network_->channel(rank_, peer).Close();
      network_->channel(peer, rank_).Close();
    }
  }

  const std::shared_ptr<Network> network_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int n) {
  const auto network = std::make_shared<Network>(n);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(n);
  for (int rank = 0; rank < n; ++rank) transports.push_back(std::make_unique<InProcessTransport>(network, rank));
  return transports;
}

std::vector<std::unique_ptr<Group>> MakeInProcessGroups(int n, const GroupOptions& options) {
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(n);
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(n)) {
    groups.push_back(MakeTransportGroup(std::move(transport), options));
  }
  return groups;
}

}  // namespace hooke
