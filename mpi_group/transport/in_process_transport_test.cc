#include "mpi_group/transport/in_process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// Two ranks that send to each other at once both finish, though nothing is buffered.
TEST(InProcessTransportTest, ExchangeWithOnePeerBothWays) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    for (char round = 0; round < 100; ++round) {
      const std::string sent(100 + round, static_cast<char>('a' + rank));
      std::string received(100 + round, ' ');
      ASSERT_EQ(transports[rank]->Exchange({1 - rank, sent}, {1 - rank, absl::MakeSpan(received)},
                                           SteadyNow() + absl::Seconds(20)),
                absl::OkStatus());
      EXPECT_EQ(received, std::string(100 + round, static_cast<char>('a' + 1 - rank)));
    }
  });
}

// Messages of one rank arrive in the order in which it sent them. A Send() of one rank matches a Receive() of another.
TEST(InProcessTransportTest, SendsArriveInOrder) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  const absl::Time deadline = SteadyNow() + absl::Seconds(20);
  RunRanks(2, [&](int rank) {
    for (char i = 0; i < 100; ++i) {
      char byte = rank == 0 ? i : 0;
      const absl::Status status = rank == 0 ? transports[0]->Send({1, absl::MakeConstSpan(&byte, 1)}, deadline)
                                            : transports[1]->Receive({0, absl::MakeSpan(&byte, 1)}, deadline);
      ASSERT_EQ(status, absl::OkStatus());
      EXPECT_EQ(byte, i);
    }
  });
}

// When the deadline has passed, the errors of a sender and of a receiver name the peer that did not come.
TEST(InProcessTransportTest, DeadlineNamesThePeer) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  char byte = 0;
  const absl::Status sent =
      transports[0]->Send({2, absl::MakeConstSpan(&byte, 1)}, SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(sent.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(sent.message()), HasSubstr("waited for rank 2"));
  const absl::Status received =
      transports[1]->Receive({2, absl::MakeSpan(&byte, 1)}, SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(received.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(received.message()), HasSubstr("waited for rank 2"));
}

// A message whose deadline has passed is withdrawn: a late receiver does not read its memory.
TEST(InProcessTransportTest, LateReceiverFindsNoMessage) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  char byte = 0;
  EXPECT_FALSE(transports[0]->Send({1, absl::MakeConstSpan(&byte, 1)}, absl::InfinitePast()).ok());
  EXPECT_EQ(transports[1]->Receive({0, absl::MakeSpan(&byte, 1)}, absl::InfinitePast()).code(),
            absl::StatusCode::kUnavailable);
}

// When a rank's transport is destroyed, ranks that wait for that rank are woken with UNAVAILABLE. Later calls that need
// the rank return UNAVAILABLE too.
TEST(InProcessTransportTest, DestroyedPeerIsUnavailable) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  RunRanks(3, [&](int rank) {
    if (rank == 1) {
      transports[1].reset();
      return;
    }
    char byte = 0;
    const absl::Status status = rank == 0
                                    ? transports[0]->Send({1, absl::MakeConstSpan(&byte, 1)}, absl::InfiniteFuture())
                                    : transports[2]->Receive({1, absl::MakeSpan(&byte, 1)}, absl::InfiniteFuture());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1, which has left the group"));
  });
}

// If a message does not have the size that its receiver expects, sender and receiver both get an error.
TEST(InProcessTransportTest, WrongSizeFailsBoth) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  const absl::Time deadline = SteadyNow() + absl::Seconds(20);
  RunRanks(2, [&](int rank) {
    char bytes[5] = {};
    const absl::Status status = rank == 0 ? transports[0]->Send({1, absl::MakeConstSpan(bytes, 4)}, deadline)
                                          : transports[1]->Receive({0, absl::MakeSpan(bytes)}, deadline);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("another size"));
  });
}

// Many messages of many sizes, both ways with every peer, arrive intact in whatever order they are waited for.
TEST(InProcessTransportTest, ManyMessagesUnderWay) {
  constexpr int kRanks = 4;
  constexpr int kMessages = 20;
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(kRanks);
  const absl::Time deadline = SteadyNow() + absl::Seconds(20);
  const auto text = [](int from, int to, int i) {
    return std::string(1 + i * 37, static_cast<char>('a' + from * 5 + to + i % 3));
  };
  RunRanks(kRanks, [&](int rank) {
    std::vector<std::string> sent;
    std::vector<std::string> received;
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; i < kMessages; ++i) {
        sent.push_back(text(rank, peer, i));
        received.push_back(std::string(text(peer, rank, i).size(), ' '));
      }
    }
    std::vector<Transport::Ticket> tickets;
    for (int i = 0; i < kRanks * kMessages; ++i) {
      if (i / kMessages == rank) continue;
      const auto receive = transports[rank]->StartReceive({i / kMessages, absl::MakeSpan(received[i])});
      const auto send = transports[rank]->StartSend({i / kMessages, sent[i]});
      ASSERT_TRUE(receive.ok() && send.ok());
      tickets.insert(tickets.end(), {*receive, *send});
    }
    std::shuffle(tickets.begin(), tickets.end(), std::mt19937(rank));
    for (Transport::Ticket ticket : tickets) ASSERT_EQ(transports[rank]->Wait(ticket, deadline), absl::OkStatus());
    for (int i = 0; i < kRanks * kMessages; ++i) {
      if (i / kMessages == rank) continue;
      EXPECT_EQ(received[i], text(i / kMessages, rank, i % kMessages));
    }
  });
}

// A message of one call does not go into a receive of another call, even if the sizes fit. Both ranks get an error.
TEST(InProcessTransportTest, MessagesOfOtherCallsAreRefused) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    transports[rank]->Begin({1, rank == 0 ? "all-reduce" : "broadcast", 10, DataType::kFloat32}, SteadyNow());
    char byte = 0;
    const absl::Status status =
        rank == 0 ? transports[0]->Send({1, absl::MakeConstSpan(&byte, 1)}, SteadyNow() + absl::Seconds(20))
                  : transports[1]->Receive({0, absl::MakeSpan(&byte, 1)}, SteadyNow() + absl::Seconds(20));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("in another call than this rank (call 1: "));
    EXPECT_EQ(transports[rank]->Settle(status, SteadyNow() + absl::Seconds(20)).message(),
              "rank 0 in call 1: all-reduce of 10 float32, rank 1 in call 1: broadcast of 10 float32; all ranks must "
              "call the same operations in the same order");
  });
}

// When a rank settles, a rank that waits for a healthy neighbour is woken long before its deadline. A rank that comes
// later does not wait either. All ranks get the same error.
TEST(InProcessTransportTest, SettlingWakesAll) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(4);
  const absl::Time start = SteadyNow();
  std::vector<absl::Status> verdicts(4);
  RunRanks(4, [&](int rank) {
    transports[rank]->Begin({1, "barrier"}, SteadyNow());
    absl::Status status = absl::DataLossError("a bad disk");
    char byte = 0;
    if (rank > 0) {
      status = transports[rank]->Receive({rank % 3 + 1, absl::MakeSpan(&byte, 1)}, SteadyNow() + absl::Seconds(60));
      EXPECT_THAT(status.code(), testing::AnyOf(absl::StatusCode::kAborted, absl::StatusCode::kUnavailable));
    }
    verdicts[rank] = transports[rank]->Settle(status, SteadyNow() + absl::Seconds(20));
  });
  EXPECT_LT(SteadyNow() - start, absl::Seconds(15));
  EXPECT_THAT(verdicts, testing::Each(absl::DataLossError("rank 0 failed in call 1: barrier: a bad disk")));
  EXPECT_EQ(transports[3]->CheckNotices().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace hooke
