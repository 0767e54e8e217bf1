#include "client/coordinator_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/fake_servers.h"

namespace hooke {
namespace {

// A port that no program serves. It refuses connections until Listen(). Then the kernel accepts them, but nobody
// answers, as with a stopped coordinator.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentPort() { close(fd_); }

  void Listen() { EXPECT_EQ(listen(fd_, 5), 0); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const int fd_;
  int port_ = 0;
};

// If no program listens, the error comes at once, with the address and what to do.
TEST(CoordinatorClientTest, NobodyListens) {
  // The port is bound, so that no other test takes it, but nothing listens.
  SilentPort port;
  const absl::Time begin = absl::Now();
  EXPECT_EQ(CoordinatorClient::Connect(port.address(), absl::Seconds(30)).status(),
            absl::UnavailableError(
                absl::StrCat("cannot reach the coordinator at ", port.address(),
                             ": Connection refused; is hooke-server running there? (--coordinator chooses another)")));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

// Connecting to a stopped coordinator ends after the timeout.
TEST(CoordinatorClientTest, NobodyAnswers) {
  SilentPort port;
  port.Listen();
  EXPECT_EQ(CoordinatorClient::Connect(port.address(), absl::Milliseconds(500)).status(),
            absl::UnavailableError(absl::StrCat(
                "cannot reach the coordinator at ", port.address(),
                ": no answer within 500ms; is hooke-server running there? (--coordinator chooses another)")));
}

// If something other than a coordinator answers, the error says so.
TEST(CoordinatorClientTest, AnotherServiceAnswers) {
  FakeParameterServer other;
  FakeListener listener(other);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->ListJobs().status(),
            absl::UnimplementedError(
                absl::StrCat("what listens at ", listener.address(),
                             " is not a coordinator, or of another version (--coordinator chooses another)")));
}

// If the coordinator restarts during a submission, the call is repeated with the same id, so the job is stored once.
TEST(CoordinatorClientTest, SubmitTriesAgainWithTheSameId) {
  FakeCoordinatorService coordinator;
  coordinator.submit_status = {grpc::UNAVAILABLE, "restarting"};
  FakeListener listener(coordinator);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Submit(v1::JobSpec()).status().code(), absl::StatusCode::kUnavailable);
  absl::MutexLock lock(&coordinator.mutex);
  ASSERT_GE(coordinator.submitted.size(), 2u);
  for (const v1::SubmitRequest& request : coordinator.submitted) {
    EXPECT_EQ(request.submission_id(), coordinator.submitted[0].submission_id());
    EXPECT_EQ(request.submission_id().size(), 32u);
  }
}

// An UNAVAILABLE answer of a running coordinator is passed on, not taken for a missing connection.
TEST(CoordinatorClientTest, AnUnavailableAnswerIsPassedOn) {
  FakeCoordinatorService coordinator;
  coordinator.submit_status = {grpc::UNAVAILABLE, "the job store has not answered for 10 s: check its disk"};
  FakeListener listener(coordinator);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Submit(v1::JobSpec()).status(),
            absl::UnavailableError("the job store has not answered for 10 s: check its disk"));
}

// If a job is too large for the coordinator, the error gives its size, the limit, and the flag that raises it.
TEST(CoordinatorClientTest, NamesTheLimitOfMessages) {
  FakeCoordinatorService coordinator;
  coordinator.submit_status = {grpc::RESOURCE_EXHAUSTED, "Received message larger than max (200000 vs. 131072)"};
  FakeListener listener(coordinator);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Submit(v1::JobSpec()).status(),
            absl::ResourceExhaustedError("a message of 200000 bytes was refused, at most 131072 are taken: "
                                         "hooke-server takes more with --max-message-bytes"));
}

// The coordinator's error about an unknown job is passed on.
TEST(CoordinatorClientTest, NoSuchJob) {
  FakeCoordinatorService coordinator;
  FakeListener listener(coordinator);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->GetJob("x-1").status(), absl::NotFoundError("no job x-1"));
}

}  // namespace
}  // namespace hooke
