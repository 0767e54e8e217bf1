#include "mpi_group/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hooke {
namespace {

// Round numbers: a message of b bytes occupies a link for 1 + b seconds, and arrives 10 seconds later.
constexpr LinkCost kLink = {10, 1, 1};

// Each formula of the header, once by hand. 8 ranks, 64 bytes, messages short enough to be one each.
TEST(TimeModelTest, ByHand) {
  const ModelCall call = {8, 64, 64};
  const double whole = 1 + 64 + 10;
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, call, kLink), 3 * whole);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kHalvingDoubling, call, kLink),
            2 * ((1 + 32 + 10) + (1 + 16 + 10) + (1 + 8 + 10)));
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRing, call, kLink), 14 * (1 + 8 + 10));
  EXPECT_EQ(AllReduceSeconds(Algorithm::kPairwise, call, kLink), 2 * (7 * (1 + 8) + 10));
  EXPECT_EQ(AllReduceSeconds(Algorithm::kReference, call, kLink), 7 * 65 + 10 + 3 * whole);
}

// A number of ranks that is no power of two costs two more steps with all values. In recursive doubling, late
// ranks catch up if they are few.
TEST(TimeModelTest, NoPowerOfTwo) {
  const double whole = 1 + 64 + 10;
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {7, 64, 64}, kLink), (2 + 2) * whole);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {6, 64, 64}, kLink), (2 + 1) * whole + 65);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {5, 64, 64}, kLink), 2 * whole + 2 * 65);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {17, 4, 64}, kLink), 5 * (1 + 4 + 10));
  EXPECT_EQ(AllReduceSeconds(Algorithm::kHalvingDoubling, {3, 64, 64}, kLink), 2 * whole + 2 * (1 + 32 + 10));
}

// Messages that follow one another wait only once for the latency. But if the latency is longer than a window of
// messages, each window waits for it.
TEST(TimeModelTest, Window) {
  // 8 messages of 8 bytes; a window takes 4 * 9 = 36 seconds, a message and its latency 19.
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {2, 64, 8, 4}, kLink), 8 * 9 + 10);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {2, 64, 8, 1}, kLink), 8 * 19);
}

// Drivers that share a link send at a part of its rate each, and wait for their latencies at the same time.
TEST(TimeModelTest, SharedLink) {
  const LinkCost shared = Shared(kLink, 4);
  EXPECT_EQ(shared.per_byte, 4);
  EXPECT_EQ(shared.latency, 10);
  EXPECT_EQ(shared.overhead, 1);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRecursiveDoubling, {2, 16, 64}, shared), 1 + 64 + 10);
}

TEST(TimeModelTest, NothingToDo) {
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRing, {1, 64}, kLink), 0);
  EXPECT_EQ(AllReduceSeconds(Algorithm::kRing, {8, 0}, kLink), 0);
  EXPECT_TRUE(std::isinf(AllReduceSeconds(Algorithm::kArena, {8, 64}, kLink)));
  EXPECT_TRUE(std::isinf(AllReduceSeconds(Algorithm::kChain, {8, 64}, kLink)));
}

}  // namespace
}  // namespace hooke
