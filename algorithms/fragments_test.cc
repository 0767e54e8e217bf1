#include "algorithms/fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FragmentsTest, Table) {
  const Range common = {10, 17};  // Seven blocks.
  EXPECT_EQ(FragmentBlocks(common, {0, 1}), common);
  EXPECT_EQ(FragmentBlocks(common, {0, 3}), (Range{10, 13}));
  EXPECT_EQ(FragmentBlocks(common, {1, 3}), (Range{13, 15}));
  EXPECT_EQ(FragmentBlocks(common, {2, 3}), (Range{15, 17}));
  EXPECT_TRUE(FragmentBlocks(common, {7, 8}).empty());
}

TEST(FragmentsTest, FirstBlocks) {
  std::vector<uint64_t> first;
  for (uint64_t block = 10; block < 17; ++block) {
    if (OpensFragment({10, 17}, block, 3)) first.push_back(block);
  }
  EXPECT_THAT(first, ElementsAre(10u, 13u, 15u));
  EXPECT_TRUE(OpensFragment({10, 17}, 10, 1));
  EXPECT_FALSE(OpensFragment({10, 17}, 11, 1));
  EXPECT_TRUE(OpensFragment({10, 12}, 11, 64)) << "of empty fragments no block is the first";
}

// Over all fragments, ranks and servers each value is exchanged once.
TEST(FragmentsTest, EachValueOnce) {
  for (const uint64_t blocks : {1, 2, 5, 16, 37}) {
    for (const uint64_t ranks : {1, 2, 3}) {
      for (const uint64_t servers : {1, 2, 4}) {
        for (const uint64_t fragments : {1, 2, 4, 64}) {
          const Partition partition(blocks * 4 - 1, 4);
          std::vector<int> times(partition.values());
          for (uint64_t fragment = 0; fragment < fragments; ++fragment) {
            for (uint64_t rank = 0; rank < ranks; ++rank) {
              uint64_t end = 0;
              for (const Range& range : FragmentValues(partition, {rank, ranks}, servers, {fragment, fragments})) {
                EXPECT_FALSE(range.empty());
                EXPECT_TRUE(range.begin > end || end == 0) << "ascending, not adjacent";
                end = range.end;
                for (uint64_t i = range.begin; i < range.end; ++i) ++times[i];
              }
            }
          }
          EXPECT_THAT(times, ::testing::Each(1)) << blocks << " " << ranks << " " << servers << " " << fragments;
        }
      }
    }
  }
}

TEST(FragmentsTest, OneOfEachServer) {
  const Partition partition(160, 10);  // 16 blocks; two servers with 8 each; one rank.
  EXPECT_THAT(FragmentValues(partition, {0, 1}, 2, {0, 1}), ElementsAre(Range{0, 160}));
  EXPECT_THAT(FragmentValues(partition, {0, 1}, 2, {1, 4}), ElementsAre(Range{20, 40}, Range{100, 120}));
  EXPECT_THAT(FragmentValues(partition, {1, 2}, 2, {1, 4}), ElementsAre(Range{100, 120}));
  EXPECT_THAT(FragmentValues(partition, {0, 1}, 2, {63, 64}), IsEmpty());
}

}  // namespace
}  // namespace hooke
