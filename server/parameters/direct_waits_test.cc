// Connections of DirectExchanges that wait: for other groups, for their peer, for the server's end. They have no thread
// of their own, and keep no other connection waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/direct_exchanges.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_direct.h"
#include "wire/frame.h"
#include "wire/frame_socket.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::FloatNear;

class DirectWaitsTest : public DirectExchangesTest {
 protected:
  // Starts a job with rounds, to which all groups attach. By default a round needs all of them.
  void StartRounds(uint32_t groups, DirectExchanges::Options options = {},
                   std::optional<double> grace_seconds = std::nullopt) {
    center_.groups = groups;
    center_.values = 8;
    v1::AttachRequest request = MakeStepRequest(center_, v1::AveragingSpec::AVERAGE, 1);
    request.mutable_job()->set_grace_seconds(grace_seconds.value_or(10));
    if (!grace_seconds.has_value()) request.mutable_job()->set_quorum(groups);
    Start(request, std::move(options));
    for (uint32_t group = 1; group < groups; ++group) {
      request.mutable_sender()->set_group(group);
      ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), request).ok());
    }
  }
  std::unique_ptr<FrameSocket> ConnectGroup(uint32_t group) {
    std::unique_ptr<FrameSocket> socket = Connect();
    EXPECT_TRUE(socket->SendOpening(MakeSender(center_, group)).ok());
    return socket;
  }
  static DirectExchanges::Options OneThread() {
    DirectExchanges::Options options;
    options.threads = 1;
    return options;
  }
  // Sends half a message of four values.
  static void SendHalf(int descriptor) {
    char bytes[kValuesHeaderBytes + 8] = {};
    EncodeValuesHeader({1, 0, 4}, absl::MakeSpan(bytes, kValuesHeaderBytes));
    ASSERT_EQ(send(descriptor, bytes, sizeof bytes, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof bytes));
  }
  // Sends messages of all values and reads no answer. The answers fill the buffers of both ends, and then the messages
  // do. It returns once nothing more could be sent for 100 ms, or the server has closed the connection.
  void SendUntilFull(int descriptor) {
    std::string message(kValuesHeaderBytes + center_.values * sizeof(float), '\0');
    for (uint64_t sequence = 1, unsent = 0; unsent < 20; ++sequence) {
      EncodeValuesHeader({sequence, 0, center_.values}, absl::MakeSpan(&message[0], kValuesHeaderBytes));
      for (size_t sent = 0; sent < message.size() && unsent < 20;) {
        const ssize_t some = send(descriptor, &message[sent], message.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (some > 0) sent += static_cast<size_t>(some);
        unsent = some > 0 ? 0 : unsent + 1;
        if (some <= 0) absl::SleepFor(absl::Milliseconds(5));
      }
    }
  }
  // Starts a job of one large block. Messages and answers have a time-out of 100 ms.
  void StartWithShortTimeout() {
    block_values_ = center_.values = 1 << 14;
    DirectExchanges::Options options;
    options.message_timeout = absl::Milliseconds(100);
    Start(MakeAttachRequest(center_), options);
  }
  // Returns a connection whose opening for `group` is sent. The caller closes it.
  int ConnectRawGroup(uint32_t group) {
    const int descriptor = ConnectRaw();
    const std::string opening = EncodeOpening(MakeSender(center_, group));
    EXPECT_EQ(send(descriptor, opening.data(), opening.size(), MSG_NOSIGNAL), static_cast<ssize_t>(opening.size()));
    return descriptor;
  }
  // Sends a byte every 5 ms, for 10 s at most. Returns whether the server has ended the connection by then.
  static bool EndsWhileBytesCome(int descriptor) {
    for (int i = 0; i < 2000; ++i) {
      if (send(descriptor, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return true;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  TestCenter center_;
};

// A thousand connections wait for a round, with no more threads than before. When the last group comes, all have their
// answer.
TEST_F(DirectWaitsTest, AThousandConnectionsWaitWithFewThreads) {
  constexpr uint32_t kGroups = 1000;
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const auto restore = absl::MakeCleanup([&before] { setrlimit(RLIMIT_NOFILE, &before); });
  if (files.rlim_max < rlim_t{3} * kGroups) GTEST_SKIP() << "this process may open only " << files.rlim_max << " files";
  StartRounds(kGroups);
  const size_t threads = ThreadsOfThisProcess();
  EXPECT_LE(threads, 70u);
  std::vector<std::unique_ptr<FrameSocket>> sockets;
  const std::vector<float> values(8, 1);
  for (uint32_t group = 0; group < kGroups; ++group) {
    if (group + 1 == kGroups) {
      EXPECT_EQ(ThreadsOfThisProcess(), threads);
    }
    sockets.push_back(ConnectGroup(group));
    ASSERT_TRUE(SendValues(*sockets.back(), {1, 0, 8}, values).ok());
  }
  for (const auto& socket : sockets) ASSERT_THAT(ReceiveAnswer(*socket, {1, 0, 8}).value(), Each(FloatNear(-1, 1e-4)));
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->updates(), 2u) << "one round for each of both blocks";
  EXPECT_EQ(ThreadsOfThisProcess(), threads);
}

// Two groups whose connections share one thread have rounds with each other.
TEST_F(DirectWaitsTest, OneThreadServesGroupsThatWaitForEachOther) {
  StartRounds(2, OneThread());
  std::vector<std::thread> clients;
  for (uint32_t group = 0; group < 2; ++group) {
    clients.emplace_back([this, group] {
      const std::unique_ptr<FrameSocket> socket = ConnectGroup(group);
      for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
        const std::vector<float> values(8, static_cast<float>(group));
        ASSERT_THAT(Exchange(*socket, {sequence, 0, 8}, values).value(), Each(-0.5f * static_cast<float>(sequence)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// The grace window ends although no message comes: the round closes without the missing group.
TEST_F(DirectWaitsTest, AGraceWindowEnds) {
  StartRounds(2, {}, /*grace_seconds=*/0.2);
  const std::unique_ptr<FrameSocket> socket = ConnectGroup(0);
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(Exchange(*socket, {1, 0, 8}, std::vector<float>(8, 1)).ok());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(190));
}

// A peer that does not read its answers, and one that sends half a message, keep no other waiting, even if there is
// only one thread.
TEST_F(DirectWaitsTest, SlowPeersDelayNobody) {
  block_values_ = 1 << 14;
  center_.values = 1 << 14;
  center_.groups = 3;
  Start(MakeAttachRequest(center_), OneThread());
  for (const uint32_t group : {1, 2}) {
    ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest(center_, group)).ok()) << group;
  }
  const std::vector<float> values(center_.values, 1);
  const int slow = ConnectRawGroup(1);
  const auto closer = absl::MakeCleanup([slow] { close(slow); });
  SendUntilFull(slow);
  const int half = ConnectRawGroup(2);
  const auto half_closer = absl::MakeCleanup([half] { close(half); });
  SendHalf(half);
  const std::unique_ptr<FrameSocket> quick = ConnectGroup(0);
  for (uint64_t sequence = 1; sequence <= 50; ++sequence) {
    ASSERT_TRUE(Exchange(*quick, {sequence, 0, center_.values}, values).ok());
  }
}

// A peer that stops in the middle of a message is given up after the message's time-out. One that is silent between
// messages is not.
TEST_F(DirectWaitsTest, APeerThatStopsInAMessageIsGivenUp) {
  DirectExchanges::Options options;
  options.message_timeout = absl::Milliseconds(100);
  StartTwoGroups(options);
  const std::unique_ptr<FrameSocket> idle = ConnectGroup(1);
  ASSERT_TRUE(Exchange(*idle, {1, 0, 4}, {1, 2, 3, 4}).ok());
  const int half = ConnectRawGroup(0);
  const auto closer = absl::MakeCleanup([half] { close(half); });
  SendHalf(half);
  char byte;
  EXPECT_EQ(recv(half, &byte, 1, 0), 0) << "closed";
  EXPECT_TRUE(Exchange(*idle, {2, 0, 4}, {1, 2, 3, 4}).ok());
}

// The time-out holds for a whole message, so a peer that sends a byte now and then is given up, too.
TEST_F(DirectWaitsTest, APeerThatDripsIsGivenUp) {
  StartWithShortTimeout();
  const int drips = ConnectRawGroup(0);
  const auto closer = absl::MakeCleanup([drips] { close(drips); });
  char header[kValuesHeaderBytes];
  EncodeValuesHeader({1, 0, center_.values}, absl::MakeSpan(header));
  ASSERT_EQ(send(drips, header, sizeof header, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof header));
  EXPECT_TRUE(EndsWhileBytesCome(drips)) << "all would take 5 minutes";
}

// A peer that does not read its answers is given up after the time-out of an answer.
TEST_F(DirectWaitsTest, APeerThatDoesNotReadIsGivenUp) {
  StartWithShortTimeout();
  const int deaf = ConnectRawGroup(0);
  const auto closer = absl::MakeCleanup([deaf] { close(deaf); });
  SendUntilFull(deaf);
  EXPECT_TRUE(EndsWhileBytesCome(deaf));
}

// Stop takes no time although 150 connections have sent nothing, half a message, or wait for a round.
TEST_F(DirectWaitsTest, StopWaitsForNobody) {
  StartRounds(60);
  std::vector<std::unique_ptr<FrameSocket>> sockets;
  sockets.reserve(150);
  for (int i = 0; i < 50; ++i) sockets.push_back(Connect());
  for (uint32_t group = 0; group < 50; ++group) {
    sockets.push_back(ConnectGroup(group));
    ASSERT_TRUE(SendValues(*sockets.back(), {1, 0, 8}, std::vector<float>(8, 1)).ok());
  }
  std::vector<int> halves;
  halves.reserve(50);
  const auto closer = absl::MakeCleanup([&halves] {
    for (const int half : halves) close(half);
  });
  for (int i = 0; i < 50; ++i) {
    halves.push_back(ConnectRaw());
    const std::string opening = EncodeOpening(MakeSender(center_, 50));
    ASSERT_GT(send(halves.back(), opening.data(), opening.size(), MSG_NOSIGNAL), 0);
  }
  SendHalf(halves.back());
  const absl::Time begin = absl::Now();
  exchanges_->Stop();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

}  // namespace
}  // namespace hooke
