// Tests messages between processes, under mpirun with 2 and 3 ranks.

#include "mpi_group/mpi/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/mpi/mpi_test_session.h"
#include "mpi_group/transport/message_cases.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/sub_transport.h"

namespace hooke {
namespace {

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

std::unique_ptr<Transport> NewTransport(uint64_t message_bytes_max = uint64_t{1} << 30) {
  MpiTransportOptions options;
  options.deadline = Soon();
  options.message_bytes_max = message_bytes_max;
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeMpiTransport(TestSession(), options);
  EXPECT_EQ(transport.status(), absl::OkStatus());
  return transport.ok() ? *std::move(transport) : nullptr;
}

// Checks short messages, and long ones that MPI does not buffer.
void CheckMessages(Transport& transport, int count) {
  CheckMessagesWithPeers(transport, {count, /*long_each=*/5, /*long_bytes=*/200000}, Soon());
}

// Many messages of many sizes, both ways with every peer, arrive intact in whatever order they are waited for, call
// after call.
TEST(MpiTransportTest, ManyMessagesUnderWay) {
  const std::unique_ptr<Transport> transport = NewTransport();
  ASSERT_NE(transport, nullptr);
  for (uint64_t call = 1; call <= 10; ++call) {
    transport->Begin({call, "barrier"}, SteadyNow());
    CheckMessages(*transport, 25);
  }
}

// Many messages also arrive intact if each travels as several MPI messages.
TEST(MpiTransportTest, LongMessagesTravelInSeveral) {
  const std::unique_ptr<Transport> transport = NewTransport(/*message_bytes_max=*/1001);
  ASSERT_NE(transport, nullptr);
  CheckMessages(*transport, 10);
}

// A sub-transport of all ranks in another order passes messages like any transport, while the underlying one is used
// too.
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
