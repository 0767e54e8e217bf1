#include "wire/http/request_lobby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "clocks/steady_time.h"
#include "wire/http/listening_port.h"

namespace hooke {
namespace {

using testing::HasSubstr;

constexpr char kHead[] = "GET / HTTP/1.1\r\n\r\n";

// A client on this machine, whose calls take at most 20 s.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval limit = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(socket_); }

  void Send(const std::string& text) const {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Returns all that comes until the other side closes the connection; "timeout" if it does not.
  std::string ReadToEnd() const {
    std::string text;
    char bytes[1000];
    while (true) {
      const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return "timeout";
      if (count <= 0) return text;
      text.append(bytes, static_cast<size_t>(count));
    }
  }

 private:
  const int socket_;
};

class RequestLobbyTest : public testing::Test {
 protected:
  void Start(RequestLobbyOptions options) {
    absl::StatusOr<ListeningPort> listening = ListeningPort::Open({"127.0.0.1", 0}, "--metrics");
    ASSERT_TRUE(listening.ok()) << listening.status();
    port_ = listening->port();
    options.arrived = [this](ArrivedRequest request) {
      close(request.descriptor);
      absl::MutexLock lock(&mutex_);
      arrived_.push_back(std::move(request.received));
    };
    absl::StatusOr<std::unique_ptr<RequestLobby>> lobby = RequestLobby::Start(*std::move(listening), options);
    ASSERT_TRUE(lobby.ok()) << lobby.status();
    lobby_ = *std::move(lobby);
  }

  // Waits until so many requests have arrived, and returns them.
  std::vector<std::string> Arrived(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return arrived_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
    return arrived_;
  }

  static RequestLobbyOptions Patient() {
    RequestLobbyOptions options;
    options.receive_within = absl::Seconds(60);
    return options;
  }

  uint16_t port_ = 0;
  absl::Mutex mutex_;
  std::vector<std::string> arrived_;
  std::unique_ptr<RequestLobby> lobby_;
};

// A head that comes in pieces, cut even in its last four bytes, arrives as a whole, with what follows it.
TEST_F(RequestLobbyTest, CollectsAHeadFromPieces) {
  Start(Patient());
  const Client client(port_);
  for (const char* piece : {"GET / HT", "TP/1.1\r", "\n\r", "\nbody"}) client.Send(piece);
  const std::vector<std::string> arrived = Arrived(1);
  EXPECT_THAT(arrived[0], testing::StartsWith(kHead));
}

// Clients that send half a head, or nothing, hold up no other client.
TEST_F(RequestLobbyTest, SlowClientsDelayNobody) {
  Start(Patient());
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Client>(port_));
    if (i % 2 == 0) slow.back()->Send("GET / HTTP/1.1\r\nHost:");
  }
  const Client quick(port_);
  quick.Send(kHead);
  EXPECT_EQ(Arrived(1)[0], kHead);
}

// A connection that has waited too long for its head is closed.
TEST_F(RequestLobbyTest, ClosesSilentConnections) {
  RequestLobbyOptions options;
  options.receive_within = absl::Milliseconds(50);
  Start(options);
  const Client client(port_);
  client.Send("GET");
  EXPECT_EQ(client.ReadToEnd(), "");
}

// If there are too many connections, the oldest one leaves.
TEST_F(RequestLobbyTest, TheOldestMakesRoom) {
  RequestLobbyOptions options = Patient();
  options.connections_max = 2;
  Start(options);
  const Client first(port_);
  const Client second(port_);
  const Client third(port_);
  EXPECT_EQ(first.ReadToEnd(), "");
  second.Send(kHead);
  third.Send(kHead);
  EXPECT_EQ(Arrived(2).size(), 2u);
}

// A head without an end is refused once it is too long.
TEST_F(RequestLobbyTest, RefusesLongHeads) {
  RequestLobbyOptions options = Patient();
  options.head_bytes_max = 1000;
  Start(options);
  const Client client(port_);
  client.Send("GET /" + std::string(995, 'x'));
  client.Send("yz");
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("431 Request Header Fields Too Large"));
}

// The destructor closes what waits.
TEST_F(RequestLobbyTest, EndsAtOnce) {
  Start(Patient());
  const Client client(port_);
  client.Send("GET");
  lobby_.reset();
  EXPECT_EQ(client.ReadToEnd(), "");
}

}  // namespace
}  // namespace hooke
