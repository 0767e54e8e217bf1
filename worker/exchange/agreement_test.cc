#include "worker/exchange/agreement.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

// All ranks end with rank 0's numbers and outcome, and with the right sums. The largest numbers arrive whole, and the
// other ranks get the first 1000 bytes of a message.
TEST(AgreementTest, NumbersAndOutcomes) {
  constexpr int kRanks = 3;
  std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(kRanks);
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Group& group = *groups[rank];
      const uint64_t most = std::numeric_limits<uint64_t>::max();
      std::vector<uint64_t> numbers = {most, 16777217};
      if (rank != 0) numbers = {1, 2};
      EXPECT_TRUE(BroadcastNumbers(group, absl::MakeSpan(numbers)).ok());
      EXPECT_THAT(numbers, ElementsAre(most, 16777217u));

      std::vector<uint64_t> sums = {uint64_t{1} << 40, 4095, static_cast<uint64_t>(rank)};
      EXPECT_TRUE(SumNumbers(group, absl::MakeSpan(sums)).ok());
      EXPECT_THAT(sums, ElementsAre(uint64_t{3} << 40, 12285u, 3u));

      absl::Status outcome = rank == 0 ? absl::NotFoundError(std::string(1200, 'x')) : absl::OkStatus();
      EXPECT_TRUE(BroadcastOutcome(group, outcome).ok());
      EXPECT_EQ(outcome.code(), absl::StatusCode::kNotFound);
      EXPECT_EQ(outcome.message().size(), rank == 0 ? 1200u : 1000u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hooke
