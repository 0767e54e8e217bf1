#include "tests/benchmarks/collectives/serve.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/benchmarks/collectives/start_barrier.h"

namespace hooke {
namespace {

constexpr absl::Duration kBarrierTimeout = absl::Seconds(60);

// Reads and writes lines on a connected socket.
class Lines {
 public:
  explicit Lines(int socket) : socket_(socket) {}
  ~Lines() { close(socket_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Returns false at the end of the stream.
  bool Read(std::string& line) {
    size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      buffer_.append(bytes, count);
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return true;
  }

  void Write(const nlohmann::json& answer) {
    const std::string text = answer.dump() + "\n";
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;  // The next Read reports the error.
      sent += count;
    }
  }

 private:
  const int socket_;
  std::string buffer_;
};

absl::StatusOr<int> Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return absl::InvalidArgumentError("too long a path: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0 || connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, "connecting to " + path);
  }
  return connection;
}

class Server {
 public:
  Server(const ServeOptions& options, const Prepare& prepare, StartBarrier& barrier)
      : options_(options), prepare_(prepare), barrier_(barrier) {}

  absl::StatusOr<nlohmann::json> Answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "prepare") {
      std::string operation;
      Task task;
      words >> operation >> task.count;
      if (operation == "broadcast") task.operation = Task::Operation::kBroadcast;
      if (operation == "reduce") task.operation = Task::Operation::kReduce;
      return PrepareAndCheck(task);
    }
    size_t index = 0;
    int calls = 0;
    int warmups = 0;
    int row = 0;
    words >> index >> calls >> warmups >> row;
    if (command != "time" || !words || row < 1 || index >= rivals_.size()) {
      return absl::InvalidArgumentError("unknown command: " + line);
    }
    for (int i = 0; i < warmups; ++i) {
      const absl::StatusOr<double> us = Time(rivals_[index], row);
      if (!us.ok()) return us.status();
    }
    nlohmann::json times = nlohmann::json::array();
    for (int i = 0; i < calls; ++i) {
      const absl::StatusOr<double> us = Time(rivals_[index], row);
      if (!us.ok()) return us.status();
      times.push_back(*us);
    }
    return nlohmann::json{{"us", times}};
  }

 private:
  // Returns small whole numbers, whose sums are exact in any order. They differ between ranks, and between indices that
  // are not a multiple of 101 apart.
  static size_t Value(size_t rank, size_t i) { return 1 + rank + i % 101; }

  absl::StatusOr<nlohmann::json> PrepareAndCheck(const Task& task) {
    rivals_.clear();
    absl::StatusOr<std::vector<Rival>> rivals = prepare_(task);
    if (!rivals.ok()) return rivals.status();
    rivals_ = *std::move(rivals);
    nlohmann::json answer = nlohmann::json::array();
    for (const Rival& rival : rivals_) {
      const absl::StatusOr<bool> correct = Check(rival, task.operation);
      if (!correct.ok()) return correct.status();
      const absl::StatusOr<double> us = Time(rival, 1);
      if (!us.ok()) return us.status();
      answer.push_back({{"name", rival.name}, {"correct", *correct}, {"us", *us}});
    }
    return nlohmann::json{{"rivals", answer}};
  }

  absl::StatusOr<bool> Check(const Rival& rival, Task::Operation operation) {
    if (!rival.has_result) return true;
    for (size_t i = 0; i < rival.values.size(); ++i) rival.values[i] = static_cast<float>(Value(options_.rank, i));
    absl::Status status = rival.call();
    if (!status.ok()) return status;
    const bool has_result = operation != Task::Operation::kReduce || options_.rank == 0;
    bool correct = true;
    for (size_t i = 0; i < rival.values.size() && has_result; ++i) {
      size_t expected = 0;
      for (int rank = 0; rank < options_.size; ++rank) expected += Value(rank, i);
      if (operation == Task::Operation::kBroadcast) expected = Value(0, i);
      correct &= rival.values[i] == static_cast<float>(expected);
    }
    return correct;
  }

  // Times one call, or a row of calls. Writes the values first, as at the end of a backward pass: each rank's values
  // are then in its own caches, as far as they fit. Zeros keep repeated sums within range.
  absl::StatusOr<double> Time(const Rival& rival, int row) {
    std::fill(rival.values.begin(), rival.values.end(), 0.0f);
    absl::Status status = barrier_.Wait(kBarrierTimeout);
    if (!status.ok()) return status;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < row && status.ok(); ++i) status = rival.call();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    if (!status.ok()) return status;
    return taken.count() / row;
  }

  const ServeOptions& options_;
  const Prepare& prepare_;
  StartBarrier& barrier_;
  std::vector<Rival> rivals_;
};

}  // namespace

void AddServeFlags(Command& command, ServeOptions& options) {
  command.Add("--socket", options.socket, "Path of the Unix socket that commands come from").Required();
  command.Add("--barrier", options.barrier, "Path of the file that the ranks' barrier lives in").Required();
}

absl::Status Serve(const ServeOptions& options, const Prepare& prepare) {
  const absl::StatusOr<std::unique_ptr<StartBarrier>> barrier = StartBarrier::Map(options.barrier, options.size);
  if (!barrier.ok()) return barrier.status();
  const absl::StatusOr<int> connection = Connect(options.socket);
  if (!connection.ok()) return connection.status();
  Lines lines(*connection);
  lines.Write({{"rank", options.rank}});
  Server server(options, prepare, **barrier);
  std::string line;
  while (lines.Read(line)) {
    const absl::StatusOr<nlohmann::json> answer = server.Answer(line);
    if (!answer.ok()) {
      lines.Write({{"error", absl::StrCat("rank ", options.rank, ": ", answer.status().ToString())}});
      return answer.status();
    }
    lines.Write(*answer);
  }
  return absl::OkStatus();
}

}  // namespace hooke
