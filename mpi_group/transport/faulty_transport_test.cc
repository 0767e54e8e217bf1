#include "mpi_group/transport/faulty_transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/ring.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

constexpr int kRanks = 4;

std::vector<std::unique_ptr<Transport>> WithFaults(const std::vector<Faults>& faults) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(faults.size());
  for (size_t i = 0; i < faults.size(); ++i) transports[i] = MakeFaultyTransport(std::move(transports[i]), faults[i]);
  return transports;
}

absl::Status SumOfOnes(Transport& transport, std::vector<float>& values, absl::Duration deadline) {
  values.assign(1000, 1);
  Scratch scratch;
  return RingAllReduce(transport, TensorList(absl::MakeSpan(values)), ReduceOp::kSum,
                       {SteadyNow() + deadline, scratch, /*chunk_bytes=*/64});
}

// Delayed messages do not change the result of a collective.
TEST(FaultyTransportTest, DelaysDoNotChangeTheResult) {
  Faults faults;
  faults.delay_probability = 0.05;
  const std::vector<std::unique_ptr<Transport>> transports = WithFaults(std::vector<Faults>(kRanks, faults));
  RunRanks(kRanks, [&](int rank) {
    std::vector<float> values;
    ASSERT_EQ(SumOfOnes(*transports[rank], values, absl::Seconds(20)), absl::OkStatus());
    for (float value : values) ASSERT_EQ(value, kRanks);
  });
}

// All survivors report a dead rank long before their deadline, whenever it dies and whatever else is delayed.
TEST(FaultyTransportTest, SurvivorsReportADeadRank) {
  for (uint64_t close_at = 0; close_at < 90; close_at += 7) {
    std::vector<Faults> faults(kRanks);
    for (Faults& one : faults) one.delay_probability = 0.02;
    faults[2].close_at = close_at;
    std::vector<std::unique_ptr<Transport>> transports = WithFaults(faults);
    const absl::Time start = SteadyNow();
    RunRanks(kRanks, [&](int rank) {
      std::vector<float> values;
      EXPECT_EQ(SumOfOnes(*transports[rank], values, absl::Seconds(60)).code(), absl::StatusCode::kUnavailable);
      transports[rank].reset();
    });
    EXPECT_LT(SteadyNow() - start, absl::Seconds(30)) << "dead from exchange " << close_at << " on";
  }
}

// A lost message leads to an error on some rank within the deadline. It leads neither to a hang nor to a wrong sum that
// all ranks take for right.
TEST(FaultyTransportTest, LostMessagesEndInAnErrorInTime) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Faults faults;
    faults.seed = seed;
    faults.drop_probability = 0.02;
    std::vector<std::unique_ptr<Transport>> transports = WithFaults(std::vector<Faults>(kRanks, faults));
    std::atomic<int> failed{0};
    const absl::Time start = SteadyNow();
    RunRanks(kRanks, [&](int rank) {
      std::vector<float> values;
      if (!SumOfOnes(*transports[rank], values, absl::Milliseconds(200)).ok()) ++failed;
      transports[rank].reset();
    });
    EXPECT_GT(failed, 0) << "seed " << seed;
    EXPECT_LT(SteadyNow() - start, absl::Seconds(20)) << "seed " << seed;
  }
}

// The same seed gives the same faults: two runs lose the same messages of one rank.
TEST(FaultyTransportTest, SameSeedSameFaults) {
  const auto lost = [](uint64_t seed) {
    Faults faults;
    faults.seed = seed;
    faults.drop_probability = 0.5;
    std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
    transports[1].reset();  // A message that is not lost fails, because its receiver has left.
    std::string messages;
    const std::unique_ptr<Transport> transport = MakeFaultyTransport(std::move(transports[0]), faults);
    for (int i = 0; i < 64; ++i) {
      const char byte = 0;
      messages += transport->Send({1, absl::MakeConstSpan(&byte, 1)}, absl::InfiniteFuture()).ok() ? 'x' : '.';
    }
    return messages;
  };
  EXPECT_EQ(lost(1), lost(1));
  EXPECT_NE(lost(1), lost(2));
}

}  // namespace
}  // namespace hooke
