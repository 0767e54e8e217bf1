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

// Two connected ends.
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

// An opening, and values beyond any socket's buffer, arrive unchanged.
TEST(FrameSocket, OpeningAndValues) {
  Pair pair;
  std::vector<float> sent(1 << 20);
  std::iota(sent.begin(), sent.end(), 0.5f);
  std::thread sender([&] {
    EXPECT_TRUE(pair.client->SendOpening(ExampleSender()).ok());
    EXPECT_TRUE(pair.client->SendPayload({7, 9, sent.size()}, BytesOf(sent)).ok());
  });
  EXPECT_EQ(pair.server->ReceiveOpening(kPatience).value().rank(), 3u);
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

// A refusal reaches a peer that is still sending, with its code and text, before the connection ends.
TEST(FrameSocket, RefusalReachesASender) {
  Pair pair;
  std::thread server([&] {
    pair.server->SendRefusal(absl::AbortedError("replaced by 2; stop"), kPatience);
    pair.server->Shutdown();
  });
  const std::vector<float> values(1 << 18);
  EXPECT_TRUE(pair.client->SendPayload({1, 0, values.size()}, BytesOf(values)).ok());
  const FrameSocket::Header header = pair.client->ReceiveHeader().value();
  EXPECT_EQ(header.refusal, absl::AbortedError("replaced by 2; stop"));
  pair.client->Shutdown();
  server.join();
  EXPECT_EQ(pair.client->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pair.client->SendPayload({1, 0, 1}, BytesOf({1.0f})).code(), absl::StatusCode::kUnavailable);
}

// Shutdown by another thread ends a waiting call.
TEST(FrameSocket, ShutdownEndsAWait) {
  Pair pair;
  std::thread waiting([&] { EXPECT_EQ(pair.client->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable); });
  pair.client->Shutdown();
  waiting.join();
}

// A peer that sends no opening in time is not waited for; one that sends garbage is refused.
TEST(FrameSocket, Strangers) {
  Pair silent;
  EXPECT_EQ(silent.client->ReceiveOpening(absl::Milliseconds(20)).status().code(), absl::StatusCode::kUnavailable);
  for (const std::string& bytes : {std::string(64, '\xff'), std::string(64, '\0'), std::string(64, '\2')}) {
    Pair pair;
    ASSERT_EQ(send(pair.raw, bytes.data(), bytes.size(), MSG_NOSIGNAL), 64);
    EXPECT_EQ(pair.client->ReceiveOpening(kPatience).status().code(), absl::StatusCode::kInvalidArgument);
  }
  Pair pair;
  ASSERT_TRUE(pair.server->SendOpening(ExampleSender()).ok());
  ASSERT_TRUE(pair.server->SendOpening(ExampleSender()).ok());
  ASSERT_TRUE(pair.server->SendOpening(ExampleSender()).ok());
  EXPECT_TRUE(pair.client->ReceiveOpening(kPatience).ok());
  EXPECT_EQ(pair.client->ReceiveHeader().status().message(), "a second opening; one is allowed, first");
}

// An opening that comes byte by byte has one timeout as a whole, not one for each byte.
TEST(FrameSocket, ADrippingOpening) {
  Pair pair;
  std::thread dripping([&pair] {
    v1::Sender sender = ExampleSender();
    sender.set_job_id(std::string(kJobIdBytesMax, 'a'));
    for (const char byte : EncodeOpening(sender)) {
      if (send(pair.raw, &byte, 1, MSG_NOSIGNAL) != 1) return;
      absl::SleepFor(absl::Milliseconds(5));
    }
  });
  EXPECT_EQ(pair.client->ReceiveOpening(absl::Milliseconds(100)).status().code(), absl::StatusCode::kUnavailable);
  pair.client->Shutdown();
  dripping.join();
}

// A job id announced longer than allowed is refused at once, before the id itself comes.
TEST(FrameSocket, ALongJobId) {
  Pair pair;
  v1::Sender sender = ExampleSender();
  sender.set_job_id(std::string(kJobIdBytesMax + 1, 'a'));
  const std::string opening = EncodeOpening(sender);
  ASSERT_EQ(send(pair.raw, opening.data(), kOpeningHeaderBytes, MSG_NOSIGNAL), ssize_t{kOpeningHeaderBytes});
  const absl::Status status = pair.client->ReceiveOpening(kPatience).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "an opening announces a job id of 101 bytes; 1 to 100 are allowed");
}

// A peer that stops reading holds a sender up no longer than about the send timeout.
TEST(FrameSocket, APeerThatStopsReading) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket sender(ends[0], absl::Milliseconds(50));
  FrameSocket reader(ends[1]);
  const std::vector<float> values(1 << 22);
  const absl::Status status = sender.SendPayload({1, 0, values.size()}, BytesOf(values));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "sending: the peer takes too long to read");
}

// The same with a peer that reads a little now and then.
TEST(FrameSocket, APeerThatReadsSlowly) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket sender(ends[0], absl::Milliseconds(100));
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

// SendRefusal returns after its timeout if the peer neither reads on nor closes.
TEST(FrameSocket, APeerThatDoesNotClose) {
  Pair pair;
  const absl::Time begin = absl::Now();
  pair.server->SendRefusal(absl::AbortedError("replaced by 2; stop"), absl::Milliseconds(50));
  EXPECT_LT(absl::Now() - begin, kPatience);
  EXPECT_EQ(pair.client->ReceiveHeader().value().refusal, absl::AbortedError("replaced by 2; stop"));
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
