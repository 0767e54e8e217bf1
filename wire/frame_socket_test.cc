#include "wire/frame_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace hooke {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// The two ends of a connection.
struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    raw = ends[1];
    client = std::make_unique<FrameSocket>(ends[0]);
    server = std::make_unique<FrameSocket>(ends[1]);
  }
  int raw = -1;  // The server's descriptor, for raw bytes.
  std::unique_ptr<FrameSocket> client;
  std::unique_ptr<FrameSocket> server;
};

// Listens at a port of loopback, and accepts nothing. One or two connections fit its queue.
class Listener {
 public:
  Listener() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(listen(descriptor_, 0), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length), 0);
    port_ = ntohs(own.sin_port);
  }
  ~Listener() { close(descriptor_); }

  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  const int descriptor_;
  uint16_t port_ = 0;
};

v1::Sender ExampleSender() {
  v1::Sender sender;
  sender.set_job_id("job-1");
  sender.set_rank(3);
  sender.set_incarnation(1);
  return sender;
}

absl::Span<const char> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// An opening arrives unchanged, and so do values that exceed any socket's buffer.
TEST(FrameSocket, OpeningAndValues) {
  Pair pair;
  std::vector<float> sent(1 << 20);
  std::iota(sent.begin(), sent.end(), 0.5f);
  std::thread sender([&] {
    EXPECT_TRUE(pair.client->SendOpening(ExampleSender()).ok());
    EXPECT_TRUE(pair.client->SendPayload({7, 9, sent.size()}, BytesOf(sent)).ok());
  });
  std::string opening(EncodeOpening(ExampleSender()).size(), '\0');
  ASSERT_EQ(recv(pair.raw, &opening[0], opening.size(), MSG_WAITALL), static_cast<ssize_t>(opening.size()));
  EXPECT_EQ(DecodeOpening(opening).value().rank(), 3u);
  const FrameSocket::Header header = pair.server->ReceiveHeader().value();
  EXPECT_TRUE(header.refusal.ok());
  EXPECT_EQ(header.values.sequence, 7u);
  EXPECT_EQ(header.values.first, 9u);
  std::vector<float> received(header.values.values);
  EXPECT_TRUE(
      pair.server->ReceivePayload({reinterpret_cast<char*>(received.data()), received.size() * sizeof(float)}).ok());
  EXPECT_EQ(received, sent);
  sender.join();
}

// Shutdown by another thread ends a waiting call.
TEST(FrameSocket, ShutdownEndsAWait) {
  Pair pair;
  std::thread waiting([&] { EXPECT_EQ(pair.client->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable); });
  pair.client->Shutdown();
  waiting.join();
}

// Connecting to a host that does not answer ends after the timeout. A listener that never accepts completes only the
// one or two connections that fit its queue.
TEST(FrameSocket, NobodyAnswers) {
  const Listener listener;
  absl::StatusOr<int> last = -1;
  std::vector<int> open;
  while (last.ok() && open.size() < 7) {
    last = ConnectTcp("127.0.0.1", listener.port(), absl::Milliseconds(200), [] { return false; });
    if (last.ok()) open.push_back(*last);
  }
  EXPECT_EQ(last.status(), absl::UnavailableError("connecting: nobody answers"));
  for (const int descriptor : open) close(descriptor);
}

// A connection that is there counts, even if the thread looks only after its time is over.
TEST(FrameSocket, LooksOnceMoreAfterItsTime) {
  const Listener listener;
  // Holds up the connecting until the listener has the connection.
  const auto slow = [&listener] {
    pollfd connected = {listener.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&connected, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))), 1);
    return false;
  };
  const absl::StatusOr<int> descriptor = ConnectTcp("127.0.0.1", listener.port(), absl::ZeroDuration(), slow);
  EXPECT_TRUE(descriptor.ok()) << descriptor.status();
  if (descriptor.ok()) close(*descriptor);
}

// If nobody listens, connecting fails at once or when it is cancelled.
TEST(FrameSocket, NobodyListens) {
  EXPECT_EQ(ConnectLocally("hooke-nobody").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ConnectLocally("").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ConnectLocally(std::string(200, 'x')).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ConnectTcp("127.0.0.1", 1, kPatience, [] { return false; }).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(ConnectTcp("127.0.0.1", 1, kPatience, [] { return true; }).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hooke
