// Messages between processes; run under mpirun by 2 and 3 ranks.

#include "mpi_group/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/mpi_test_session.h"
#include "mpi_group/sub_transport.h"

namespace hooke {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

std::unique_ptr<Transport> NewTransport(uint64_t message_bytes_max = uint64_t{1} << 30) {
  MpiTransportOptions options;
  options.deadline = Soon();
  options.message_bytes_max = message_bytes_max;
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeMpiTransport(TestSession(), options);
  EXPECT_EQ(transport.status(), absl::OkStatus());
  return transport.ok() ? *std::move(transport) : nullptr;
}

// Message i from one rank to another: short ones and ones that MPI does not buffer.
std::string Text(int from, int to, int i) {
  return std::string(i % 5 == 4 ? 200000 + i : 1 + i * 301, static_cast<char>('a' + from * 5 + to + i % 3));
}

// Starts `count` messages both ways with every peer, waits for them in an order of its own, looks at what came.
void CheckMessages(Transport& transport, int count) {
  const int rank = transport.rank();
  std::vector<std::string> sent;
  std::vector<std::string> received;
  for (int peer = 0; peer < transport.size(); ++peer) {
    for (int i = 0; i < count; ++i) {
      sent.push_back(Text(rank, peer, i));
      received.push_back(std::string(Text(peer, rank, i).size(), ' '));
    }
  }
  std::vector<Transport::Ticket> tickets;
  for (int i = 0; i < transport.size() * count; ++i) {
    if (i / count == rank) continue;
    const auto send = transport.StartSend({i / count, sent[i]});
    const auto receive = transport.StartReceive({i / count, absl::MakeSpan(received[i])});
    ASSERT_TRUE(receive.ok() && send.ok());
    tickets.insert(tickets.end(), {*receive, *send});
  }
  std::shuffle(tickets.begin(), tickets.end(), std::mt19937(rank));
  for (Transport::Ticket ticket : tickets) ASSERT_EQ(transport.Wait(ticket, Soon()), absl::OkStatus());
  for (int i = 0; i < transport.size() * count; ++i) {
    if (i / count == rank) continue;
    EXPECT_TRUE(received[i] == Text(i / count, rank, i % count)) << "message " << i;
  }
}

// Many messages of many sizes, both ways with every peer, are all right in whatever order they are waited for, call
// after call.
TEST(MpiTransportTest, ManyMessagesUnderWay) {
  const std::unique_ptr<Transport> transport = NewTransport();
  ASSERT_NE(transport, nullptr);
  for (uint64_t call = 1; call <= 10; ++call) {
    transport->Begin({call, "barrier"}, absl::Now());
    CheckMessages(*transport, 25);
  }
}

// The same where each message travels in several of MPI's.
TEST(MpiTransportTest, LongMessagesTravelInSeveral) {
  const std::unique_ptr<Transport> transport = NewTransport(/*message_bytes_max=*/1001);
  ASSERT_NE(transport, nullptr);
  CheckMessages(*transport, 10);
}

// A sub-transport of all ranks in another order passes messages like any transport, beside the one it is part of.
TEST(MpiTransportTest, SubTransport) {
  const std::unique_ptr<Transport> transport = NewTransport();
  ASSERT_NE(transport, nullptr);
  std::vector<int> ranks;
  for (int rank = transport->size() - 1; rank >= 0; --rank) ranks.push_back(rank);
  const std::unique_ptr<Transport> reversed = MakeSubTransport(*transport, ranks);
  EXPECT_EQ(reversed->rank(), transport->size() - 1 - transport->rank());
  CheckMessages(*reversed, 5);
  CheckMessages(*transport, 5);
}

}  // namespace
}  // namespace hooke
