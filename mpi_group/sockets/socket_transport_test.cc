#include "mpi_group/sockets/socket_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/sockets/file_descriptor.h"
#include "mpi_group/sockets/socket_ranks.h"
#include "mpi_group/sockets/socket_stream.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/message_cases.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/transport.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// More bytes than sockets buffer, so that a send is not done before its receiver takes part.
constexpr size_t kLong = size_t{8} << 20;

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

CallLabel AllReduce(uint64_t number, uint64_t values = 10) {
  return {number, "all-reduce", values, DataType::kFloat32};
}

std::string Message(absl::Status status) { return std::string(status.message()); }

// Many messages of many sizes, both ways with every peer, arrive intact in whatever order they are waited for. That
// holds even if only some of them go over sockets.
TEST(SocketTransportTest, ManyMessagesUnderWay) {
  for (const std::vector<int>& node_of_rank : {std::vector<int>{0, 1}, {0, 1, 2, 3}, {0, 0, 1, 1}}) {
    SocketRanks ranks(node_of_rank);
    RunRanks(ranks.size(), [&](int rank) {
      for (uint64_t call = 1; call <= 5; ++call) {
        ranks[rank].Begin(AllReduce(call), SteadyNow());
        CheckMessagesWithPeers(ranks[rank], {15, /*long_each=*/7, /*long_bytes=*/700000}, Soon());
      }
    });
  }
}

// Messages arrive with every patience, from sleeping at once to polling for ever.
TEST(SocketTransportTest, EveryPatience) {
  for (absl::Duration patience :
       {absl::ZeroDuration(), SocketPatienceFor(false), SocketPatienceFor(true), absl::InfiniteDuration()}) {
    SocketRanks ranks({0, 1, 1}, patience);
    RunRanks(ranks.size(), [&](int rank) {
      ranks[rank].Begin(AllReduce(1), SteadyNow());
      CheckMessagesWithPeers(ranks[rank], {15, /*long_each=*/7, /*long_bytes=*/700000}, Soon());
    });
  }
}

// IsDone() tells when a message is done, and waiting for it afterwards still works.
TEST(SocketTransportTest, IsDone) {
  SocketRanks ranks({0, 1});
  RunRanks(2, [&](int rank) {
    std::string bytes(kLong, static_cast<char>('a' + rank));
    const auto ticket = rank == 0 ? ranks[0].StartSend({1, bytes}) : ranks[1].StartReceive({0, absl::MakeSpan(bytes)});
    ASSERT_TRUE(ticket.ok());
    const absl::Time until = Soon();
    while (!ranks[rank].IsDone(*ticket) && SteadyNow() < until) absl::SleepFor(absl::Microseconds(100));
    EXPECT_TRUE(ranks[rank].IsDone(*ticket));
    EXPECT_EQ(ranks[rank].Wait(*ticket, absl::InfinitePast()), absl::OkStatus());
    EXPECT_EQ(bytes, std::string(kLong, 'a'));
  });
}

// The error at the deadline names a peer that is silent or stops in the middle of a message.
TEST(SocketTransportTest, DeadlineNamesThePeer) {
  SocketRanks ranks({0, 1, 2});
  std::string bytes(kLong, ' ');
  const absl::Status silent = ranks[0].Receive({2, absl::MakeSpan(bytes)}, SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(silent.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(silent), HasSubstr("waited for rank 2 until the deadline (receiving from it)"));
  std::string other(kLong, ' ');
  ASSERT_TRUE(ranks[2].StartSend({1, other}).ok());
  const absl::Status stopped = ranks[1].Receive({2, absl::MakeSpan(bytes)}, SteadyNow() + absl::Milliseconds(50));
  EXPECT_EQ(stopped.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(stopped), HasSubstr("waited for rank 2"));
  EXPECT_FALSE(ranks[1].StartSend({0, other}).ok());  // After an error every call fails.
}

// A peer that ends in the middle of a message is UNAVAILABLE for its receiver and for its sender, long before the
// deadline.
TEST(SocketTransportTest, GonePeerIsUnavailable) {
  SocketRanks ranks({0, 1, 2});
  std::string bytes(kLong, ' ');
  std::string other(kLong, ' ');
  ASSERT_TRUE(ranks[1].StartSend({0, other}).ok());
  ranks.Destroy(1);
  const absl::Status received = ranks[0].Receive({1, absl::MakeSpan(bytes)}, Soon());
  EXPECT_EQ(received.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(received), HasSubstr("receiving from rank 1, which has left the group"));
  const absl::Status sent = ranks[2].Send({1, bytes}, Soon());
  EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(sent), HasSubstr("sending to rank 1, which has left the group"));
}

// A message of another size than its receiver expects is an error as soon as it comes; the error has both sizes.
TEST(SocketTransportTest, WrongSize) {
  SocketRanks ranks({0, 1});
  char bytes[5] = {};
  ASSERT_EQ(ranks[0].Send({1, absl::MakeConstSpan(bytes, 4)}, Soon()), absl::OkStatus());
  const absl::Status status = ranks[1].Receive({0, absl::MakeSpan(bytes)}, Soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("receiving from rank 0: 4 bytes came where 5 were expected"));
}

// A message of another call is refused even if its size fits. The error names this rank's call.
TEST(SocketTransportTest, OtherCall) {
  for (const CallLabel& other : {AllReduce(1), AllReduce(3), AllReduce(2, 11)}) {
    SocketRanks ranks({0, 1});
    ranks[0].Begin(other, SteadyNow());
    ranks[1].Begin(AllReduce(2), SteadyNow());
    char byte = 0;
    ASSERT_EQ(ranks[0].Send({1, absl::MakeConstSpan(&byte, 1)}, Soon()), absl::OkStatus());
    const absl::Status status = ranks[1].Receive({0, absl::MakeSpan(&byte, 1)}, Soon());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), HasSubstr("rank 0, which is in another call than this rank; all ranks must call the "
                                           "same operations in the same order (this rank: call 2: all-reduce"));
  }
}

// A rank that waits for one peer notices a message of another peer that it can never take. Such a message is of an
// earlier call, or of a call with the same number and another label. A message of a later call is no error, as that
// peer is only ahead.
TEST(SocketTransportTest, StrayMessages) {
  const struct {
    CallLabel call;
    absl::StatusCode code;
  } kTable[] = {
      {AllReduce(4), absl::StatusCode::kInvalidArgument},
      {AllReduce(5, 11), absl::StatusCode::kInvalidArgument},
      {AllReduce(5), absl::StatusCode::kDeadlineExceeded},
      {AllReduce(6), absl::StatusCode::kDeadlineExceeded},
  };
  for (const auto& row : kTable) {
    SocketRanks ranks({0, 1, 2});
    ranks[0].Begin(row.call, SteadyNow());
    ranks[1].Begin(AllReduce(5), SteadyNow());
    char byte = 0;
    ASSERT_EQ(ranks[0].Send({1, absl::MakeConstSpan(&byte, 1)}, Soon()), absl::OkStatus());
    const bool is_error = row.code == absl::StatusCode::kInvalidArgument;
    const absl::Status status =
        ranks[1].Receive({2, absl::MakeSpan(&byte, 1)}, is_error ? Soon() : SteadyNow() + absl::Milliseconds(30));
    EXPECT_EQ(status.code(), row.code) << status;
    EXPECT_EQ(Message(status).find("rank 0 ") != std::string::npos, is_error) << status;
  }
}

// A stray is found even if many peers are ahead, so that each of their connections has bytes to read all the time.
TEST(SocketTransportTest, StrayAmongManyEarlyMessages) {
  constexpr int kPeers = 400;
  for (bool stray : {false, true}) {
    const std::vector<std::unique_ptr<Transport>> inner = MakeInProcessTransports(2);
    std::vector<FileDescriptor> peers(kPeers + 1);
    std::vector<FileDescriptor> connections(kPeers + 1);
    for (int peer = 1; peer <= kPeers; ++peer) {
      int ends[2] = {-1, -1};
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
      connections[peer] = FileDescriptor(ends[0]);
      peers[peer] = FileDescriptor(ends[1]);
      if (peer == 1) continue;
      const MessageHeader header = {stray && peer == kPeers ? uint64_t{4} : uint64_t{6}, 1, 0, 0};
      const std::string message = std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + "x";
      ASSERT_EQ(send(peers[peer].get(), message.data(), message.size(), 0), message.size());
    }
    const std::unique_ptr<SocketTransport> rank = MakeSocketTransport(*inner[0], std::move(connections));
    rank->Begin(AllReduce(5), SteadyNow());
    char byte = 0;
    const absl::Status status =
        rank->Receive({1, absl::MakeSpan(&byte, 1)}, stray ? Soon() : SteadyNow() + absl::Milliseconds(50));
    EXPECT_EQ(status.code(), stray ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Message(status).find("rank 400 ") != std::string::npos, stray) << status;
  }
}

// If the process may not open the file that watches the connections, all calls say so.
TEST(SocketTransportTest, NoFileLeftForTheWatch) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto start = [] {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) _exit(1);
    const std::vector<std::unique_ptr<Transport>> inner = MakeInProcessTransports(2);
    const rlimit limits = {3, 3};
    if (setrlimit(RLIMIT_NOFILE, &limits) != 0) _exit(1);
    std::vector<FileDescriptor> connections(2);
    connections[1] = FileDescriptor(ends[0]);
    const std::unique_ptr<SocketTransport> rank = MakeSocketTransport(*inner[0], std::move(connections));
    const char byte = 0;
    std::cerr << rank->Send({1, absl::MakeConstSpan(&byte, 1)}, Soon()) << "\n";
    _exit(0);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0), "watching the connections between nodes: Too many open files");
}

// A message whose header was read before its receive was started is received like any other.
TEST(SocketTransportTest, EarlyMessageIsTaken) {
  SocketRanks ranks({0, 1, 2});
  for (int rank : {0, 1, 2}) ranks[rank].Begin(AllReduce(1), SteadyNow());
  const std::string sent = "early";
  const std::string late = "late";
  ASSERT_EQ(ranks[0].Send({1, sent}, Soon()), absl::OkStatus());
  std::string received(sent.size(), ' ');
  std::string other(late.size(), ' ');
  RunRanks(2, [&](int thread) {
    if (thread == 0) {
      absl::SleepFor(absl::Milliseconds(10));  // Lets rank 1 look for strays meanwhile; the test holds without it too.
      EXPECT_EQ(ranks[2].Send({1, late}, Soon()), absl::OkStatus());
      return;
    }
    EXPECT_EQ(ranks[1].Receive({2, absl::MakeSpan(other)}, Soon()), absl::OkStatus());
    EXPECT_EQ(ranks[1].Receive({0, absl::MakeSpan(received)}, Soon()), absl::OkStatus());
  });
  EXPECT_EQ(received, sent);
  EXPECT_EQ(other, late);
}

// When a rank settles, a rank that waits for a healthy neighbour is woken long before its deadline. All ranks get the
// same error.
TEST(SocketTransportTest, SettlingWakesAll) {
  SocketRanks ranks({0, 1, 2, 3});
  const absl::Time start = SteadyNow();
  std::vector<absl::Status> verdicts(4);
  RunRanks(4, [&](int rank) {
    ranks[rank].Begin({1, "barrier"}, SteadyNow());
    absl::Status status = absl::DataLossError("a bad disk");
    char byte = 0;
    if (rank > 0) {
      status = ranks[rank].Receive({rank % 3 + 1, absl::MakeSpan(&byte, 1)}, SteadyNow() + absl::Seconds(60));
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    }
    verdicts[rank] = ranks[rank].Settle(status, Soon());
  });
  EXPECT_LT(SteadyNow() - start, absl::Seconds(15));
  EXPECT_THAT(verdicts, testing::Each(absl::DataLossError("rank 0 failed in call 1: barrier: a bad disk")));
}

// A transport whose notices come from the test.
class AskingTransport : public ForwardingTransport {
 public:
  AskingTransport(std::unique_ptr<Transport> transport, std::function<absl::Status()> look)
      : ForwardingTransport(std::move(transport)), look_(std::move(look)) {}

  absl::Status CheckNotices() override { return look_(); }

 private:
  const std::function<absl::Status()> look_;
};

// Rank 0 of two, in its first call. The test holds the other end of its connection.
class LoneRank {
 public:
  explicit LoneRank(std::function<absl::Status()> look = [] { return absl::OkStatus(); })
      : inner_(std::move(MakeInProcessTransports(2).front()), std::move(look)) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    peer_ = FileDescriptor(ends[1]);
    std::vector<FileDescriptor> connections(2);
    connections[1] = FileDescriptor(ends[0]);
    rank_ = MakeSocketTransport(inner_, std::move(connections));
    rank_->Begin(AllReduce(1), SteadyNow());
  }

  Transport& rank() { return *rank_; }
  void Hear(const std::string& bytes) const {
    ASSERT_EQ(send(peer_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // Number of bytes that the rank has sent, none of which the test has taken yet.
  ssize_t BytesSent() const {
    char bytes[1000];
    return recv(peer_.get(), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  }

 private:
  AskingTransport inner_;
  FileDescriptor peer_;
  std::unique_ptr<Transport> rank_;
};

// Whatever bytes a peer sends, none are written past a message's memory, and the rank gets an error.
TEST(SocketTransportTest, Garbage) {
  for (char garbage : {'\0', '\1', '\xff'}) {
    LoneRank lone;
    lone.Hear(std::string(1000, garbage));
    std::string memory(100, '.');
    const absl::Status status = lone.rank().Receive({1, absl::MakeSpan(memory).first(50)}, Soon());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(memory.substr(50), std::string(50, '.'));
  }
}

// A message that IsDone() has refused stays refused for Wait(), even if the bytes behind it would complete it.
TEST(SocketTransportTest, GarbageSeenByIsDone) {
  LoneRank lone;
  std::string memory(50, '.');
  const auto ticket = lone.rank().StartReceive({1, absl::MakeSpan(memory)});
  ASSERT_TRUE(ticket.ok());
  EXPECT_FALSE(lone.rank().IsDone(*ticket));
  lone.Hear(std::string(40, 'x'));
  EXPECT_TRUE(lone.rank().IsDone(*ticket));
  lone.Hear(std::string(100, 'x'));
  EXPECT_TRUE(lone.rank().IsDone(*ticket));
  const absl::Status status = lone.rank().Wait(*ticket, Soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("rank 1, which is in another call"));
  EXPECT_EQ(lone.rank().StartReceive({1, absl::MakeSpan(memory)}).status(), status);
}

// A rank that comes after the others have given up learns it at its first send, whose bytes are under way by then.
TEST(SocketTransportTest, FirstSendGoesBeforeNotices) {
  ssize_t sent = -1;
  std::function<ssize_t()> bytes_sent;
  LoneRank lone([&] {
    sent = bytes_sent();
    return absl::AbortedError("rank 1 failed");
  });
  bytes_sent = [&lone] { return lone.BytesSent(); };
  const std::string word = "word";
  EXPECT_EQ(lone.rank().StartSend({1, word}).status(), absl::AbortedError("rank 1 failed"));
  EXPECT_EQ(sent, 24 + 4);
  EXPECT_EQ(lone.rank().StartSend({1, word}).status(), absl::AbortedError("rank 1 failed"));
  EXPECT_EQ(lone.BytesSent(), 24 + 4);
}

// Short calls check for notices at most once a millisecond.
TEST(SocketTransportTest, NoticesAreLookedForNowAndThen) {
  int looks = 0;
  LoneRank lone([&looks] {
    ++looks;
    return absl::OkStatus();
  });
  const absl::Time start = SteadyNow() + absl::Seconds(1);
  const std::string word = "word";
  for (uint64_t call = 0; call < 40; ++call) {
    lone.rank().Begin(AllReduce(2 + call), start + call * absl::Microseconds(250));
    EXPECT_EQ(lone.rank().Send({1, word}, Soon()), absl::OkStatus());
    EXPECT_EQ(lone.rank().Send({1, word}, Soon()), absl::OkStatus());
  }
  EXPECT_EQ(looks, 10);
}

}  // namespace
}  // namespace hooke
