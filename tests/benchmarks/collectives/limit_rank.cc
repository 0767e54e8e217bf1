// Measures the machine's limits as if they were a library.
//
// "memory" has one process per rank. All at the same time, each reads and rewrites its share of every rank's values in
// shared memory once. Nothing is summed, and no process waits for another. "goodput" has one process per host. Each
// sends its values to the next host while it receives as many from the previous one, over plain sockets.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "flags/command_line.h"
#include "tests/benchmarks/collectives/rival.h"
#include "tests/benchmarks/collectives/serve.h"

namespace hooke {
namespace {

constexpr uint64_t kBlockValues = 256;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack.

struct LimitOptions {
  ServeOptions serve;
  std::string memory;  // Path of a file that the ranks map. Empty: measure goodput.
  std::string address;
  std::string next;  // Address of the next host.
  int port = 0;
};

__attribute__((target_clones("avx512f", "avx2", "default"))) void AddOne(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] += 1;
}

struct Mapping {
  char* begin = nullptr;
  uint64_t bytes = 0;

  ~Mapping() {
    if (begin != nullptr) munmap(begin, bytes);
  }
};

absl::StatusOr<std::shared_ptr<Mapping>> Map(const std::string& path, uint64_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, "opening " + path);
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory != MAP_FAILED) {
    // Asks for huge pages, as groups do, and touches the memory now rather than in a timed call.
    madvise(memory, bytes, MADV_HUGEPAGE);
    madvise(memory, bytes, kPopulateWrite);
  }
  const int error = errno;
  close(file);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(error, "mapping " + path);
  auto mapping = std::make_shared<Mapping>();
  mapping->begin = static_cast<char*>(memory);
  mapping->bytes = bytes;
  return mapping;
}

absl::StatusOr<std::vector<Rival>> PrepareMemory(const LimitOptions& options, const Task& task) {
  const uint64_t size = options.serve.size;
  const uint64_t rank = options.serve.rank;
  // Each rank's values begin on a page boundary.
  const uint64_t stride = (task.count * sizeof(float) + 4095) / 4096 * 4096;
  const absl::StatusOr<std::shared_ptr<Mapping>> mapping = Map(options.memory, stride * size);
  if (!mapping.ok()) return mapping.status();
  char* const begin = (*mapping)->begin;
  Rival memory;
  memory.name = "memory";
  memory.values = absl::MakeSpan(reinterpret_cast<float*>(begin + rank * stride), task.count);
  memory.memory = *mapping;
  memory.has_result = false;
  const uint64_t from = task.count * rank / size;
  const uint64_t to = task.count * (rank + 1) / size;
  memory.call = [=] {
    // Walks all ranks' values side by side, as a sum does. So a cache miss on one rank's values overlaps with work on
    // another's.
    for (uint64_t block = from; block < to; block += kBlockValues) {
      for (uint64_t peer = 0; peer < size; ++peer) {
        AddOne(reinterpret_cast<float*>(begin + peer * stride) + block, std::min(kBlockValues, to - block));
      }
    }
    return absl::OkStatus();
  };
  return std::vector<Rival>{memory};
}

// A process's connections in the ring: `to` leads to the next process, `from` comes from the previous one.
struct Neighbours {
  int to = -1;
  int from = -1;

  ~Neighbours() {
    if (to >= 0) close(to);
    if (from >= 0) close(from);
  }
};

absl::StatusOr<sockaddr_in> Address(const std::string& ip, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) return absl::InvalidArgumentError("no address: " + ip);
  return address;
}

absl::Status ConnectTo(const sockaddr_in& address, int& connection) {
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (absl::Now() < give_up) {
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) return absl::ErrnoToStatus(errno, "socket");
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return absl::OkStatus();
    }
    // The other process may not listen yet, so try again.
    close(connection);
    connection = -1;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError("the next host does not answer");
}

absl::StatusOr<std::shared_ptr<Neighbours>> ConnectRing(const LimitOptions& options) {
  const absl::StatusOr<sockaddr_in> own = Address(options.address, options.port);
  if (!own.ok()) return own.status();
  const absl::StatusOr<sockaddr_in> next = Address(options.next, options.port);
  if (!next.ok()) return next.status();
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&*own), sizeof(*own)) != 0 || listen(listener, 1) != 0) {
    return absl::ErrnoToStatus(errno, "listening on " + options.address);
  }
  auto neighbours = std::make_shared<Neighbours>();
  absl::Status status = ConnectTo(*next, neighbours->to);
  pollfd waiting = {listener, POLLIN, 0};
  if (status.ok() && poll(&waiting, 1, 10000) == 1) neighbours->from = accept(listener, nullptr, nullptr);
  close(listener);
  if (!status.ok()) return status;
  if (neighbours->from < 0) return absl::DeadlineExceededError("the host before does not connect");
  for (int connection : {neighbours->to, neighbours->from}) {
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  }
  return neighbours;
}

absl::Status MoveBothWays(const Neighbours& neighbours, absl::Span<const float> values, absl::Span<char> received) {
  const char* const out = reinterpret_cast<const char*>(values.data());
  const size_t bytes = values.size() * sizeof(float);
  size_t sent = 0;
  size_t got = 0;
  while (sent < bytes || got < bytes) {
    pollfd ready[2] = {{neighbours.to, static_cast<int16_t>(sent < bytes ? POLLOUT : 0), 0},
                       {neighbours.from, static_cast<int16_t>(got < bytes ? POLLIN : 0), 0}};
    if (poll(ready, 2, 30000) <= 0) return absl::DeadlineExceededError("no byte moved for 30 s");
    if (ready[0].revents != 0 && sent < bytes) {
      const ssize_t count = send(neighbours.to, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) return absl::ErrnoToStatus(errno, "send");
      sent += std::max<ssize_t>(count, 0);
    }
    if (ready[1].revents != 0 && got < bytes) {
      const size_t room = std::min(received.size(), bytes - got);
      const ssize_t count = recv(neighbours.from, received.data(), room, MSG_DONTWAIT);
      if (count == 0) return absl::UnavailableError("the host before is gone");
      if (count < 0 && errno != EAGAIN) return absl::ErrnoToStatus(errno, "recv");
      got += std::max<ssize_t>(count, 0);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepare> MakePrepare(const LimitOptions& options) {
  if (!options.memory.empty()) return Prepare([options](const Task& task) { return PrepareMemory(options, task); });
  const absl::StatusOr<std::shared_ptr<Neighbours>> ring = ConnectRing(options);
  if (!ring.ok()) return ring.status();
  const auto received = std::make_shared<std::vector<char>>(size_t{256} << 10);
  return Prepare([neighbours = *ring, received](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    Rival goodput = OnVector("goodput", task.count, [neighbours, received](absl::Span<float> values) {
      return MoveBothWays(*neighbours, values, absl::MakeSpan(*received));
    });
    goodput.has_result = false;
    return std::vector<Rival>{goodput};
  });
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("limit_rank",
                         "Limits of the machine for the collectives benchmark. tests/benchmarks/run starts it.");
  hooke::LimitOptions options;
  hooke::AddServeFlags(command, options.serve);
  command.Add("--rank", options.serve.rank, "This process").Required();
  command.Add("--size", options.serve.size, "Number of processes").Required();
  command.Add("--memory", options.memory, "Path of a file to map: measures the memory, not the network");
  command.Add("--address", options.address, "IP address of this host");
  command.Add("--next", options.next, "IP address of the next host");
  command.Add("--port", options.port, "Port that each process listens on");
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const absl::StatusOr<hooke::Prepare> prepare = hooke::MakePrepare(options);
  const absl::Status status = prepare.ok() ? hooke::Serve(options.serve, *prepare) : prepare.status();
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
