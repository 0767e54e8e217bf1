#include "mpi_group/in_process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "mpi_group/rank_threads.h"

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
                                           absl::Now() + absl::Seconds(20)),
                absl::OkStatus());
      EXPECT_EQ(received, std::string(100 + round, static_cast<char>('a' + 1 - rank)));
    }
  });
}

// Messages of one rank arrive in the order of its calls; a send alone and a receive alone fit together.
TEST(InProcessTransportTest, SendsArriveInOrder) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
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

// A peer that does not come is named when the deadline has passed, by the sender as by the receiver.
TEST(InProcessTransportTest, DeadlineNamesThePeer) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  char byte = 0;
  const absl::Status sent =
      transports[0]->Send({2, absl::MakeConstSpan(&byte, 1)}, absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(sent.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(sent.message()), HasSubstr("waited for rank 2"));
  const absl::Status received =
      transports[1]->Receive({2, absl::MakeSpan(&byte, 1)}, absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(received.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(received.message()), HasSubstr("waited for rank 2"));
}

// A deadline ends the loan of a message: who comes later does not read memory that is no longer there.
TEST(InProcessTransportTest, LateReceiverFindsNoMessage) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  char byte = 0;
  EXPECT_FALSE(transports[0]->Send({1, absl::MakeConstSpan(&byte, 1)}, absl::InfinitePast()).ok());
  EXPECT_EQ(transports[1]->Receive({0, absl::MakeSpan(&byte, 1)}, absl::InfinitePast()).code(),
            absl::StatusCode::kUnavailable);
}

// A rank that goes away wakes those that wait for it, and fails those that come later.
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

// A message of another size than the receiver's fails the receiver, and its sender hears of that.
TEST(InProcessTransportTest, WrongSizeFailsBoth) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  RunRanks(2, [&](int rank) {
    char bytes[5] = {};
    if (rank == 0) {
      EXPECT_EQ(transports[0]->Send({1, absl::MakeConstSpan(bytes, 4)}, deadline).code(),
                absl::StatusCode::kUnavailable);
    } else {
      const absl::Status status = transports[1]->Receive({0, absl::MakeSpan(bytes)}, deadline);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(status.message()), HasSubstr("another size"));
    }
  });
}

}  // namespace
}  // namespace hooke
