#include "mpi_group/transport/virtual_network.h"

#include <gtest/gtest.h>

#include <vector>

#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using Transports = std::vector<std::unique_ptr<VirtualTransport>>;

// Round numbers, so that times can be added in the head: a message of b bytes occupies a link for 1 + b seconds, and
// needs 10 more to arrive.
constexpr VirtualNetwork kNetwork = {{10, 1, 1}, 1};

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

absl::Status SendBytes(Transport& transport, int to, size_t bytes) {
  const std::vector<char> memory(bytes);
  return transport.Send({to, memory}, Soon());
}

absl::Status ReceiveBytes(Transport& transport, int from, size_t bytes) {
  std::vector<char> memory(bytes);
  return transport.Receive({from, absl::MakeSpan(memory)}, Soon());
}

// The sender is busy for a message's overhead and bytes. The receiver has it after the latency, too.
TEST(VirtualNetworkTest, OneMessage) {
  const Transports transports = MakeVirtualTransports(2, kNetwork);
  RunRanks(2, [&](int rank) {
    EXPECT_EQ(rank == 0 ? SendBytes(*transports[0], 1, 4) : ReceiveBytes(*transports[1], 0, 4), absl::OkStatus());
  });
  EXPECT_EQ(transports[0]->now(), 5);
  EXPECT_EQ(transports[1]->now(), 15);
  for (const auto& transport : transports) transport->Restart();
  EXPECT_EQ(transports[1]->now(), 0);
}

// Both directions of a link work at the same time.
TEST(VirtualNetworkTest, BothWays) {
  const Transports transports = MakeVirtualTransports(2, kNetwork);
  RunRanks(2, [&](int rank) {
    const std::vector<char> own(4);
    std::vector<char> other(4);
    EXPECT_EQ(transports[rank]->Exchange({1 - rank, own}, {1 - rank, absl::MakeSpan(other)}, Soon()), absl::OkStatus());
  });
  EXPECT_EQ(transports[0]->now(), 15);
  EXPECT_EQ(transports[1]->now(), 15);
}

// Messages that are started together follow one another on the sender's link, also those to different ranks. The
// latency passes for all of them at once.
TEST(VirtualNetworkTest, MessagesOfOneSender) {
  const Transports transports = MakeVirtualTransports(3, kNetwork);
  RunRanks(3, [&](int rank) {
    if (rank > 0) {
      EXPECT_EQ(ReceiveBytes(*transports[rank], 0, 4), absl::OkStatus());
      return;
    }
    const std::vector<char> memory(4);
    const auto first = transports[0]->StartSend({1, memory});
    const auto second = transports[0]->StartSend({2, memory});
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(transports[0]->now(), 0);
    EXPECT_EQ(transports[0]->Wait(*second, Soon()), absl::OkStatus());
    EXPECT_EQ(transports[0]->Wait(*first, Soon()), absl::OkStatus());
  });
  EXPECT_EQ(transports[0]->now(), 10);
  EXPECT_EQ(transports[1]->now(), 15);
  EXPECT_EQ(transports[2]->now(), 20);
}

// Messages of several senders follow one another on the receiver's link.
TEST(VirtualNetworkTest, MessagesToOneReceiver) {
  const Transports transports = MakeVirtualTransports(3, kNetwork);
  RunRanks(3, [&](int rank) {
    if (rank > 0) {
      EXPECT_EQ(SendBytes(*transports[rank], 0, 4), absl::OkStatus());
      return;
    }
    EXPECT_EQ(ReceiveBytes(*transports[0], 1, 4), absl::OkStatus());
    EXPECT_EQ(ReceiveBytes(*transports[0], 2, 4), absl::OkStatus());
  });
  EXPECT_EQ(transports[0]->now(), 20);
}

// A rank that waits for a message sends its own from the message's arrival on. Each byte counts as often as the network
// says.
TEST(VirtualNetworkTest, AMessageThatWaitsForAnother) {
  const Transports transports = MakeVirtualTransports(3, {{10, 1, 1}, 100});
  RunRanks(3, [&](int rank) {
    absl::Status status;
    if (rank > 0) status.Update(ReceiveBytes(*transports[rank], rank - 1, 1));
    if (rank < 2) status.Update(SendBytes(*transports[rank], rank + 1, 1));
    EXPECT_EQ(status, absl::OkStatus());
  });
  EXPECT_EQ(transports[1]->now(), 111 + 101);
  EXPECT_EQ(transports[2]->now(), 2 * 111);
}

}  // namespace
}  // namespace hooke
