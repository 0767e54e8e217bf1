#include "mpi_group/transport/sub_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using testing::HasSubstr;

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

// Each rank sends `number` to the next rank of the transport and returns the number that it receives.
char FromPrevious(Transport& transport, char number) {
  char received = -1;
  const int n = transport.size();
  EXPECT_EQ(transport.Exchange({(transport.rank() + 1) % n, absl::MakeConstSpan(&number, 1)},
                               {(transport.rank() + n - 1) % n, absl::MakeSpan(&received, 1)}, Soon()),
            absl::OkStatus());
  return received;
}

// Two sub-transports with ranks in another order pass messages among their own ranks only. Afterwards the whole
// transport still works.
TEST(SubTransportTest, RingsOfSomeRanks) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(5);
  RunRanks(5, [&](int rank) {
    const std::vector<int> ranks = rank % 2 == 0 ? std::vector<int>{4, 0, 2} : std::vector<int>{1, 3};
    const std::unique_ptr<Transport> part = MakeSubTransport(*transports[rank], ranks);
    EXPECT_EQ(part->size(), static_cast<int>(ranks.size()));
    EXPECT_EQ(ranks[part->rank()], rank);
    const int previous = ranks[(part->rank() + part->size() - 1) % part->size()];
    EXPECT_EQ(FromPrevious(*part, static_cast<char>(rank)), previous);
    EXPECT_EQ(FromPrevious(*transports[rank], static_cast<char>(rank)), (rank + 4) % 5);
  });
}

// Errors name ranks of the underlying transport, and a failure reaches all of its ranks.
TEST(SubTransportTest, ErrorsNameTheUnderlyingRank) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  const std::unique_ptr<Transport> part = MakeSubTransport(*transports[0], {2, 0});
  char byte = 0;
  const absl::Status status = part->Receive({0, absl::MakeSpan(&byte, 1)}, SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waited for rank 2"));
  EXPECT_EQ(transports[1]->CheckNotices(), absl::OkStatus());
  const absl::Status verdict = part->Settle(status, SteadyNow() + absl::Milliseconds(20));
  EXPECT_EQ(verdict.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(transports[1]->CheckNotices().code(), absl::StatusCode::kAborted);
}

// An empty message is no message, whatever its rank.
TEST(SubTransportTest, NothingToNobody) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(1);
  const std::unique_ptr<Transport> alone = MakeSubTransport(*transports[0], {0});
  EXPECT_EQ(alone->Exchange({}, {}, Soon()), absl::OkStatus());
}

}  // namespace
}  // namespace hooke
