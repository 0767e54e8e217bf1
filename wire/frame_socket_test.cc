#include "wire/frame_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

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

// A peer that stops reading delays a sender no longer than about the sender's timeout.
TEST(FrameSocket, APeerThatStopsReading) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket sender(ends[0], {absl::Milliseconds(50), absl::InfiniteDuration()});
  FrameSocket reader(ends[1]);
  const std::vector<float> values(1 << 22);
  const absl::Status status = sender.SendPayload({1, 0, values.size()}, BytesOf(values));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "sending: the peer takes too long to read");
}

// A peer that reads only a little now and then delays a sender no longer than about the sender's timeout.
TEST(FrameSocket, APeerThatReadsSlowly) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket sender(ends[0], {absl::Milliseconds(100), absl::InfiniteDuration()});
  std::thread reader([descriptor = ends[1]] {
    char some[4096];
    while (recv(descriptor, some, sizeof some, 0) > 0) absl::SleepFor(absl::Milliseconds(5));
    close(descriptor);
  });
  const std::vector<float> values(1 << 22);
  const absl::Time begin = absl::Now();
  const absl::Status status = sender.SendPayload({1, 0, values.size()}, BytesOf(values));
  EXPECT_EQ(status.message(), "sending: the peer takes too long to read");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8)) << "all would take 20 s";
  sender.Shutdown();
  reader.join();
}

// A receiver with a timeout waits without a limit for a message to begin. It waits no longer than the timeout for the
// rest of a message, even if a byte comes now and then.
TEST(FrameSocket, APeerThatStopsInAMessage) {
  const std::vector<float> values(4);
  std::string message(kValuesHeaderBytes, '\0');
  EncodeValuesHeader({1, 0, values.size()}, absl::MakeSpan(&message[0], message.size()));
  const auto receive = [&](size_t bytes, bool drips) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FrameSocket receiver(ends[0], {absl::InfiniteDuration(), absl::Milliseconds(50)});
    std::thread peer([&message, bytes, drips, descriptor = ends[1]] {
      absl::SleepFor(absl::Milliseconds(120));  // Longer than the timeout, which does not hold before the first byte.
      EXPECT_EQ(send(descriptor, message.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
      while (drips && send(descriptor, "", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(10));
      char end;
      EXPECT_LE(recv(descriptor, &end, 1, 0), 0);
      close(descriptor);
    });
    absl::Status status = receiver.ReceiveHeader().status();
    std::vector<char> payload(1 << 20);
    if (status.ok()) status = receiver.ReceivePayload(absl::MakeSpan(payload));
    receiver.Shutdown();
    peer.join();
    return status;
  };
  for (const auto& [bytes, drips] : {std::pair(size_t{5}, false), {message.size(), false}, {message.size(), true}}) {
    EXPECT_EQ(receive(bytes, drips),
              absl::UnavailableError("receiving: the peer takes too long to send the rest of a message"));
  }
}

// Connecting to a host that does not answer ends after the timeout. A listener that never accepts completes only the
// one or two connections that fit its queue.
TEST(FrameSocket, NobodyAnswers) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length), 0);
  absl::StatusOr<int> last = -1;
  std::vector<int> open = {listener};
  while (last.ok() && open.size() < 8) {
    last = ConnectTcp("127.0.0.1", ntohs(own.sin_port), absl::Milliseconds(200), [] { return false; });
    if (last.ok()) open.push_back(*last);
  }
  EXPECT_EQ(last.status(), absl::UnavailableError("connecting: nobody answers"));
  for (const int descriptor : open) close(descriptor);
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
