#include "server/parameters/direct_exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "proto/job.pb.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_direct.h"
#include "wire/frame.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = kDirectPatience;
constexpr size_t kSessionBytes = 1 << 20;
constexpr size_t kStrangerBytes = 16 << 10;

// Exchanges over TCP and over the Unix socket reach the same center. An exchange that is sent again is answered again.
TEST_F(DirectExchangesTest, BothSockets) {
  const std::unique_ptr<FrameSocket> tcp = Connect();
  FrameSocket local(ConnectLocally(exchanges_->local_name()).value());
  ASSERT_TRUE(tcp->SendOpening(MakeSender({}, 0)).ok());
  ASSERT_TRUE(local.SendOpening(MakeSender({}, 1)).ok());
  const std::vector<float> eights(10, 8.0f);
  EXPECT_THAT(Exchange(*tcp, {1, 0, 10}, eights).value(), Each(2.0f));
  EXPECT_THAT(Exchange(local, {1, 0, 10}, eights).value(), Each(1.5f));
  EXPECT_THAT(Exchange(*tcp, {1, 0, 10}, eights).value(), Each(2.0f));
  EXPECT_THAT(store_->Find(SenderOf("job-1")).value()->CopyBlock(2).values, Each(3.5f));
}

// A session's refusal comes back with its code and text, and ends the connection.
TEST_F(DirectExchangesTest, Refusals) {
  const std::unique_ptr<FrameSocket> strange = Connect();
  TestCenter unknown;
  unknown.job_id = "job-2";
  ASSERT_TRUE(strange->SendOpening(MakeSender(unknown)).ok());
  EXPECT_EQ(strange->ReceiveHeader().value().refusal.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(strange->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable);

  const std::unique_ptr<FrameSocket> wrong = Connect();
  ASSERT_TRUE(wrong->SendOpening(MakeSender({})).ok());
  const absl::Status refusal = Exchange(*wrong, {1, 1, 3}, {1, 2, 3}).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("a block has 3 values from value 1 on"));
  EXPECT_THAT(store_->Find(SenderOf("job-1")).value()->CopyBlock(0).values, Each(0.0f));
}

// An incarnation that has not attached, with the job's key or without it, ends no connection. It does not replace the
// incarnation that has attached.
TEST_F(DirectExchangesTest, AStrangersOpeningReplacesNobody) {
  const std::unique_ptr<FrameSocket> own = Connect();
  ASSERT_TRUE(own->SendOpening(MakeSender({})).ok());
  ASSERT_TRUE(Exchange(*own, {1, 0, 4}, {1, 2, 3, 4}).ok());
  TestCenter guessed;
  guessed.job_key = "a job's kez";
  TestCenter without;
  without.job_key = "";
  const auto refusal = [this](const TestCenter& center, uint32_t incarnation) {
    const std::unique_ptr<FrameSocket> stranger = Connect();
    EXPECT_TRUE(stranger->SendOpening(MakeSender(center, 0, 0, incarnation)).ok());
    return stranger->ReceiveHeader().value().refusal.code();
  };
  EXPECT_EQ(refusal(guessed, 1), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refusal(without, 0xffffffff), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refusal({}, 0xffffffff), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Exchange(*own, {2, 0, 4}, {1, 2, 3, 4}).ok());
  EXPECT_EQ(store_->Find(MakeSender({})).value()->CopyGroups().incarnations[0], 1u);
}

// A rank has one connection. A new connection ends the rank's previous one, whatever that is doing, and changes nothing
// else. Other ranks' connections stay, and a replaced incarnation is refused.
TEST_F(DirectExchangesTest, ARanksNextConnectionEndsTheOneBefore) {
  const std::unique_ptr<FrameSocket> other = Connect();
  ASSERT_TRUE(other->SendOpening(MakeSender({}, 1)).ok());
  ASSERT_TRUE(Exchange(*other, {1, 0, 4}, {1, 2, 3, 4}).ok());
  ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest({}, 0, 2)).ok());
  std::vector<std::unique_ptr<FrameSocket>> connections;
  connections.reserve(20);
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    connections.push_back(Connect());
    ASSERT_TRUE(connections.back()->SendOpening(MakeSender({}, 0, 0, 2)).ok());
    ASSERT_TRUE(Exchange(*connections.back(), {sequence, 0, 4}, {1, 2, 3, 4}).ok());
    if (sequence > 1) {
      const std::unique_ptr<FrameSocket>& before = connections[connections.size() - 2];
      EXPECT_EQ(before->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable);
    }
  }
  const std::unique_ptr<FrameSocket> replaced = Connect();
  ASSERT_TRUE(replaced->SendOpening(MakeSender({}, 0, 0, 1)).ok());
  EXPECT_EQ(replaced->ReceiveHeader().value().refusal.code(), absl::StatusCode::kAborted);
  const std::unique_ptr<FrameSocket> nobody = Connect();
  ASSERT_TRUE(nobody->SendOpening(MakeSender({}, 0, 7)).ok());
  EXPECT_EQ(nobody->ReceiveHeader().value().refusal.message(), "sender.rank is 7; 0 to 0 are allowed");
  EXPECT_TRUE(Exchange(*connections.back(), {21, 0, 4}, {1, 2, 3, 4}).ok());
  EXPECT_TRUE(Exchange(*other, {2, 0, 4}, {1, 2, 3, 4}).ok());
}

// Bytes that no client sends, or messages cut off anywhere, end their own connection and nothing else.
TEST_F(DirectExchangesTest, StrangersBytes) {
  std::string whole = EncodeOpening(MakeSender({}));
  const size_t opening = whole.size();
  whole.resize(opening + kValuesHeaderBytes);
  EncodeValuesHeader({1, 0, 4}, absl::MakeSpan(&whole[opening], kValuesHeaderBytes));
  const auto deliver = [this](const std::string& bytes) {
    const int descriptor = ConnectRaw();
    const auto closer = absl::MakeCleanup([descriptor] { close(descriptor); });
    // The server may have closed the connection meanwhile, so a failure is ignored.
    send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(descriptor, SHUT_WR);
    char answer[256];
    while (recv(descriptor, answer, sizeof answer, 0) > 0) {
    }
  };
  for (size_t length = 0; length <= whole.size(); ++length) deliver(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(~changed[at]);
    deliver(changed);
  }
  deliver(std::string(1 << 16, '\xff'));
  deliver("GET / HTTP/1.1\r\nHost: hooke\r\n\r\n");
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->updates(), 0u);
  const std::unique_ptr<FrameSocket> good = Connect();
  ASSERT_TRUE(good->SendOpening(MakeSender({})).ok());
  EXPECT_TRUE(Exchange(*good, {1, 0, 4}, {1, 2, 3, 4}).ok());
}

// Stop ends connections that wait for their next message, also if another connection has sent nothing. A second Stop
// does nothing.
TEST_F(DirectExchangesTest, Stop) {
  const std::unique_ptr<FrameSocket> silent = Connect();
  const std::unique_ptr<FrameSocket> idle = Connect();
  ASSERT_TRUE(idle->SendOpening(MakeSender({})).ok());
  ASSERT_TRUE(Exchange(*idle, {1, 0, 4}, {1, 2, 3, 4}).ok());
  exchanges_->Stop();
  EXPECT_EQ(idle->ReceiveHeader().status().code(), absl::StatusCode::kUnavailable);
  exchanges_->Stop();
}

// Many clients come and go at once. The shard counts one update for each block of each exchange.
TEST_F(DirectExchangesTest, ManyConnections) {
  std::vector<std::thread> clients;
  for (uint32_t group = 0; group < 2; ++group) {
    clients.emplace_back([this, group] {
      std::vector<float> x(10, 64.0f);
      for (uint64_t sequence = 1; sequence <= 40; ++sequence) {
        const std::unique_ptr<FrameSocket> socket = Connect();
        ASSERT_TRUE(socket->SendOpening(MakeSender({}, group)).ok());
        const std::vector<float> answer = Exchange(*socket, {sequence, 0, 10}, x).value();
        for (size_t i = 0; i < x.size(); ++i) x[i] -= answer[i];
      }
      EXPECT_GT(x[0], 0);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->updates(), 2u * 40 * 3);
}

// If a rank connects again, the server ends its earlier connection, which still waits for its round. At most four
// connections of a rank wait so; then the server refuses the next one.
TEST_F(DirectExchangesTest, FewConnectionsOfARankWait) {
  TestCenter center;
  center.values = 64;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::AVERAGE, 1);
  request.mutable_job()->set_grace_seconds(10);
  Start(request);
  std::vector<std::unique_ptr<FrameSocket>> connections;
  connections.reserve(5);
  const std::vector<float> zeros(4);
  for (uint64_t block = 1; block <= 4; ++block) {
    connections.push_back(Connect());
    ASSERT_TRUE(connections.back()->SendOpening(MakeSender(center)).ok());
    // A single group waits for no other group, and a repeat is answered at once. So an answer shows that the server has
    // taken the connection.
    ASSERT_TRUE(Exchange(*connections.back(), {1, 0, 4}, zeros).ok());
    if (block == 1) {
      request.mutable_sender()->set_group(1);
      ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), request).ok());
    }
    const char* bytes = reinterpret_cast<const char*>(zeros.data());
    ASSERT_TRUE(connections.back()->SendPayload({2, 4 * block, 4}, {bytes, 16}).ok());
  }
  connections.push_back(Connect());
  ASSERT_TRUE(connections.back()->SendOpening(MakeSender(center)).ok());
  const absl::Status refusal = connections.back()->ReceiveHeader().value().refusal;
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(refusal.message()), "4 streams of rank 0 of group 0 still wait for a round; try again");
  store_->StopWaiting();
}

// Neither a rank nor a peer that sends nothing, or is no client, gets a thread of its own. A stranger gets next to no
// memory, whatever its opening says. Strangers do not keep ranks from exchanging.
TEST_F(DirectExchangesTest, StrangersHaveNoThreads) {
  const size_t threads = ThreadsOfThisProcess();
  const size_t bytes = AllocatedBytes();
  std::vector<std::unique_ptr<FrameSocket>> strangers;
  TestCenter unknown;
  unknown.job_key = "";
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(Connect());
    if (i % 2 == 0) continue;
    ASSERT_TRUE(strangers.back()->SendOpening(MakeSender(unknown)).ok());
  }
  const std::unique_ptr<FrameSocket> rank = Connect();
  ASSERT_TRUE(rank->SendOpening(MakeSender({})).ok());
  EXPECT_THAT(Exchange(*rank, {1, 0, 4}, {8, 8, 8, 8}).value(), Each(2.0f));
  EXPECT_EQ(ThreadsOfThisProcess(), threads);
  EXPECT_LT(AllocatedBytes(), bytes + kSessionBytes + strangers.size() * kStrangerBytes);
  for (size_t i = 1; i < strangers.size(); i += 2) {
    EXPECT_EQ(strangers[i]->ReceiveHeader().value().refusal.code(), absl::StatusCode::kPermissionDenied);
  }
  exchanges_->Stop();
  const std::string log = log_.str();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 102) << "a flood is no flood in the log";
}

// If silent connections take all files that the process may open, they are closed, oldest first, and the log says why
// once. A rank that comes among them is served.
TEST_F(DirectExchangesTest, SilentConnectionsTakeAllFiles) {
  sockaddr_in server = {};
  server.sin_family = AF_INET;
  server.sin_port = htons(exchanges_->port());
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr int kStrangers = 40;
  std::vector<int> clients(kStrangers + 1);
  for (int& client : clients) client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {static_cast<rlim_t>(clients.back()) + 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto restore = absl::MakeCleanup([&before] { setrlimit(RLIMIT_NOFILE, &before); });
  for (const int client : clients) {
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&server), sizeof server), 0);
  }
  FrameSocket rank(clients.back());
  ASSERT_TRUE(rank.SendOpening(MakeSender({})).ok());
  EXPECT_THAT(Exchange(rank, {1, 0, 4}, {8, 8, 8, 8}).value(), Each(2.0f));
  char byte;
  EXPECT_EQ(recv(clients.front(), &byte, 1, 0), 0) << "the oldest was closed";
  for (int i = 0; i < kStrangers; ++i) close(clients[i]);
  exchanges_->Stop();
  EXPECT_THAT(log_.str(), HasSubstr("a direct connection cannot be accepted: Too many open files; this process has"));
  EXPECT_EQ(log_.str().find("cannot be accepted"), log_.str().rfind("cannot be accepted"));
}

// If all sessions are taken, the next rank is told to try again. It is accepted when another rank has left.
TEST_F(DirectExchangesTest, AllSessionsAreTaken) {
  DirectExchanges::Options options;
  options.sessions_max = 1;
  StartTwoGroups(options);
  std::unique_ptr<FrameSocket> first = Connect();
  ASSERT_TRUE(first->SendOpening(MakeSender({}, 0)).ok());
  ASSERT_TRUE(Exchange(*first, {1, 0, 4}, {8, 8, 8, 8}).ok());
  const std::unique_ptr<FrameSocket> second = Connect();
  ASSERT_TRUE(second->SendOpening(MakeSender({}, 1)).ok());
  EXPECT_EQ(second->ReceiveHeader().value().refusal,
            absl::UnavailableError("this server has 1 direct exchanges, all that it takes; try again"));
  first.reset();
  const absl::Time give_up = absl::Now() + kPatience;
  absl::Status status = absl::UnavailableError("");
  for (uint64_t sequence = 1; !status.ok() && absl::Now() < give_up; ++sequence) {
    const std::unique_ptr<FrameSocket> again = Connect();
    ASSERT_TRUE(again->SendOpening(MakeSender({}, 1)).ok());
    status = Exchange(*again, {sequence, 0, 4}, {8, 8, 8, 8}).status();
  }
  EXPECT_TRUE(status.ok()) << status;
}

// Listening at the address of another host fails.
TEST(DirectExchanges, NoSuchHost) {
  const auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  EXPECT_EQ(DirectExchanges::Listen({nullptr, logger, "192.0.2.1"}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hooke
