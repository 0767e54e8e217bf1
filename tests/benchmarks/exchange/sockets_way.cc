#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/benchmarks/exchange/slices.h"
#include "tests/benchmarks/exchange/tcp.h"
#include "tests/benchmarks/exchange/ways.h"

namespace hooke {
namespace {

// This many bytes fit into the buffers of idle sockets. They can be sent before anything is received, without a thread.
constexpr uint64_t kDirectBytes = 64 << 10;

// A thread that runs one task at a time.
class Runner {
 public:
  Runner() : thread_([this] { Run(); }) {}
  ~Runner() {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    thread_.join();
  }

  void Start(std::function<absl::Status()> work) {
    absl::MutexLock lock(&mutex_);
    work_ = std::move(work);
  }
  absl::Status Wait() {
    absl::MutexLock lock(&mutex_);
    auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return work_ == nullptr; };
    mutex_.Await(absl::Condition(&idle));
    return status_;
  }

 private:
  void Run() {
    while (true) {
      std::function<absl::Status()> work;
      {
        absl::MutexLock lock(&mutex_);
        auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || work_ != nullptr; };
        mutex_.Await(absl::Condition(&wanted));
        if (work_ == nullptr) return;
        work = work_;
      }
      absl::Status status = work();
      absl::MutexLock lock(&mutex_);
      status_ = std::move(status);
      work_ = nullptr;
    }
  }

  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<absl::Status()> work_ ABSL_GUARDED_BY(mutex_);  // Null while idle.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// A connection to one server, and this rank's values for it.
class Connection {
 public:
  Connection(Tcp tcp, const Range& range) : tcp_(std::move(tcp)), range_(range), received_(range.size()) {}

  void Begin(absl::Span<const float> x) {
    const char* from = reinterpret_cast<const char*>(x.data() + range_.begin);
    const auto send = [this, from] { return tcp_.Send(from, bytes()); };
    if (bytes() <= kDirectBytes) {
      sent_ = send();
      return;
    }
    sender_.Start(send);
    receiver_.Start([this] { return Receive(); });
  }
  absl::Status End() {
    if (bytes() <= kDirectBytes) return sent_.ok() ? Receive() : sent_;
    absl::Status status = sender_.Wait();
    absl::Status received = receiver_.Wait();
    return status.ok() ? received : status;
  }

  // True if the last answer equals what was sent.
  bool Equal(absl::Span<const float> x) const {
    return absl::MakeConstSpan(received_) == x.subspan(range_.begin, range_.size());
  }

 private:
  uint64_t bytes() const { return range_.size() * sizeof(float); }
  absl::Status Receive() { return tcp_.Receive(reinterpret_cast<char*>(received_.data()), bytes()); }

  const Tcp tcp_;
  const Range range_;
  std::vector<float> received_;
  absl::Status sent_;
  Runner sender_;
  Runner receiver_;
};

using Connections = std::vector<std::unique_ptr<Connection>>;

absl::Status RoundTrip(const Connections& connections, absl::Span<const float> x) {
  for (const auto& connection : connections) connection->Begin(x);
  absl::Status status;
  for (const auto& connection : connections) status.Update(connection->End());
  return status;
}

}  // namespace

Prepare SocketsWay(const WayOptions& options) {
  return [options](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    auto connections = std::make_shared<Connections>();
    for (size_t server = 0; server < options.servers.size(); ++server) {
      const Range range = ValuesWith(options, task.count, server);
      if (range.empty()) continue;
      absl::StatusOr<Tcp> tcp = Tcp::Connect(options.servers[server]);
      if (!tcp.ok()) return tcp.status();
      connections->push_back(std::make_unique<Connection>(*std::move(tcp), range));
    }
    std::vector<float> x(task.count);
    for (uint64_t i = 0; i < task.count; ++i) x[i] = static_cast<float>(i % 1000);
    if (absl::Status status = RoundTrip(*connections, x); !status.ok()) return status;
    for (const auto& connection : *connections) {
      if (!connection->Equal(x)) return absl::DataLossError("what came back is not what was sent");
    }
    Rival way =
        OnVector("sockets", task.count, [connections](absl::Span<float> x) { return RoundTrip(*connections, x); });
    way.has_result = false;  // Connection::Equal above has checked the answers.
    return std::vector<Rival>{way};
  };
}

}  // namespace hooke
