#include "wire/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Stands before a server on a slow line: the server's bytes on a new connection arrive only after `delay`. It serves
// one connection after another until it is destroyed.
class SlowLine {
 public:
  SlowLine(int server_port, absl::Duration delay) : server_port_(server_port), delay_(delay) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~SlowLine() {
    stopped_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void Serve() {
    while (!stopped_) {
      const int from = accept(listener_, nullptr, nullptr);
      if (from < 0) return;
      ++connections_;
      const int to = socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in address = Loopback(server_port_);
      if (connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) Relay(from, to);
      close(to);
      close(from);
    }
  }

  void Relay(int from, int to) {
    const absl::Time due = absl::Now() + delay_;
    for (bool open = true; open && !stopped_;) {
      const bool slow = absl::Now() < due;
      // Without the second entry, poll leaves the server's bytes where they are.
      std::array<pollfd, 2> ready = {pollfd{from, POLLIN, 0}, pollfd{slow ? -1 : to, POLLIN, 0}};
      poll(ready.data(), ready.size(), 20);
      if (ready[0].revents != 0) open = Pass(from, to);
      if (open && ready[1].revents != 0) open = Pass(to, from);
    }
  }

  static bool Pass(int from, int to) {
    std::array<char, 4096> bytes;
    const ssize_t got = read(from, bytes.data(), bytes.size());
    return got > 0 && write(to, bytes.data(), static_cast<size_t>(got)) == got;
  }

  const int server_port_;
  const absl::Duration delay_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

// An attempt to connect may take longer than the first pause between attempts. When callers limited an attempt to 100
// ms, no connection was made over a line as slow as this one.
TEST(ChannelTest, AnAttemptToConnectMayTakeLongerThanTheFirstPause) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  // A server needs some way to be called.
  const auto calls = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  {
    SlowLine line(port, absl::Milliseconds(400));
    grpc::ChannelArguments arguments;
    SetReconnect(arguments, absl::Milliseconds(50));
    const auto channel = OpenChannel(absl::StrCat("127.0.0.1:", line.port()), arguments, {});
    EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    EXPECT_EQ(line.connections(), 1);
  }
  server->Shutdown();
  calls->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (calls->Next(&tag, &ok)) {
  }
}

}  // namespace
}  // namespace hooke
