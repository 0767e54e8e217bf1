#include "algorithms/sharding.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace hooke {
namespace {

// Expects that the parts of a cut cover 0 to `count` without gaps. Sizes must differ by at most one, larger ones first.
void ExpectEvenCover(const std::vector<Range>& parts, uint64_t count) {
  uint64_t next = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].begin, next) << "part " << i;
    EXPECT_GE(parts[i].end, parts[i].begin) << "part " << i;
    next = parts[i].end;
    if (i > 0) {
      EXPECT_LE(parts[i].size(), parts[i - 1].size()) << "part " << i;
    }
  }
  EXPECT_EQ(next, count);
  EXPECT_LE(parts.front().size() - parts.back().size(), 1u);
}

// Any count is cut into runs whose sizes differ by at most one and that cover it once, even with more parts than items.
TEST(EvenPartTest, CoversEachItemOnceWithEvenSizes) {
  for (uint64_t count : {0, 1, 2, 3, 6, 7, 8, 9, 100, 101, 1000003}) {
    for (uint64_t count_parts : {1, 2, 3, 7, 8, 64, 150}) {
      SCOPED_TRACE(testing::Message() << count << " in " << count_parts);
      std::vector<Range> parts;
      for (uint64_t i = 0; i < count_parts; ++i) parts.push_back(EvenPart(count, {i, count_parts}));
      ExpectEvenCover(parts, count);
    }
  }
}

// Servers and ranks rely on the exact cut, so this test notices a change of it.
TEST(EvenPartTest, IsTheAgreedCut) {
  struct Row {
    uint64_t count;
    Cut cut;
    Range want;
  };
  const Row rows[] = {
      {10, {0, 3}, {0, 4}}, {10, {1, 3}, {4, 7}}, {10, {2, 3}, {7, 10}}, {2, {0, 4}, {0, 1}},
      {2, {1, 4}, {1, 2}},  {2, {2, 4}, {2, 2}},  {2, {3, 4}, {2, 2}},   {0, {0, 1}, {0, 0}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(EvenPart(row.count, row.cut), row.want) << row.count << ": " << row.cut.index << " of " << row.cut.parts;
  }
}

// A count near the top of 64 bits does not overflow.
TEST(EvenPartTest, HandlesHugeCounts) {
  const uint64_t count = UINT64_MAX;
  EXPECT_EQ(EvenPart(count, {2, 3}).end, count);
  EXPECT_EQ(EvenPart(count, {0, 2}).end, EvenPart(count, {1, 2}).begin);
}

// Intersect of ranges that are disjoint, touching, partial, nested and equal.
TEST(IntersectTest, Table) {
  struct Row {
    Range a, b, want;
  };
  const Row rows[] = {
      {{0, 5}, {5, 9}, {0, 0}}, {{3, 5}, {0, 2}, {3, 3}}, {{0, 5}, {3, 9}, {3, 5}},
      {{0, 9}, {3, 4}, {3, 4}}, {{2, 4}, {2, 4}, {2, 4}}, {{7, 7}, {0, 9}, {7, 7}},
  };
  for (const Row& row : rows) EXPECT_EQ(Intersect(row.a, row.b), row.want) << row.a.begin << " " << row.b.begin;
}

struct Sizes {
  uint64_t values;
  uint64_t block_values;
};

class PartitionTest : public testing::TestWithParam<Sizes> {
 protected:
  const Partition partition_{GetParam().values, GetParam().block_values};

  // Returns, for each value, how many of `ranges` cover it.
  std::vector<int> Coverage(const std::vector<Range>& ranges) const {
    std::vector<int> times(partition_.values());
    for (const Range& range : ranges) {
      for (uint64_t i = range.begin; i < range.end; ++i) ++times.at(i);
    }
    return times;
  }
  bool EachOnce(const std::vector<Range>& ranges) const {
    const std::vector<int> times = Coverage(ranges);
    return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
  }
};

// Every value is in exactly one block, and BlockOf names it.
TEST_P(PartitionTest, EachValueIsInOneBlock) {
  std::vector<Range> blocks;
  for (uint64_t b = 0; b < partition_.blocks(); ++b) {
    blocks.push_back(partition_.BlockRange(b));
    EXPECT_FALSE(blocks.back().empty());
    EXPECT_LE(blocks.back().size(), partition_.block_values());
    for (uint64_t i = blocks.back().begin; i < blocks.back().end; ++i) EXPECT_EQ(partition_.BlockOf(i), b);
  }
  EXPECT_TRUE(EachOnce(blocks));
  EXPECT_EQ(partition_.Values({0, partition_.blocks()}), (Range{0, partition_.values()}));
}

// Every value is in exactly one shard and one slice, for any number of servers and ranks, even more than blocks. Each
// shard and slice begins and ends where a block does.
TEST_P(PartitionTest, EachValueIsInOneShardAndOneSlice) {
  for (uint64_t parts : {1, 2, 3, 4, 7, 16, 40}) {
    std::vector<Range> shards;
    std::vector<Range> slices;
    for (uint64_t i = 0; i < parts; ++i) {
      shards.push_back(partition_.ShardValues({i, parts}));
      slices.push_back(partition_.Values(partition_.SliceBlocks({i, parts})));
      if (!shards.back().empty()) {
        EXPECT_EQ(shards.back().begin % partition_.block_values(), 0u);
      }
      EXPECT_EQ(shards.back(), partition_.Values(partition_.ShardBlocks({i, parts})));
    }
    EXPECT_TRUE(EachOnce(shards)) << parts;
    EXPECT_TRUE(EachOnce(slices)) << parts;
  }
}

// Over all servers and ranks, the intersections of shards and slices cover each value once. So no block is exchanged
// twice, and none is missed.
TEST_P(PartitionTest, SlicesMeetShardsInEachBlockOnce) {
  for (uint64_t servers : {1, 2, 3, 5}) {
    for (uint64_t ranks : {1, 2, 3, 4, 9}) {
      std::vector<Range> sent;
      for (uint64_t s = 0; s < servers; ++s) {
        for (uint64_t r = 0; r < ranks; ++r) {
          sent.push_back(
              partition_.Values(Intersect(partition_.SliceBlocks({r, ranks}), partition_.ShardBlocks({s, servers}))));
        }
      }
      EXPECT_TRUE(EachOnce(sent)) << servers << " servers, " << ranks << " ranks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PartitionTest,
                         testing::Values(Sizes{0, 1}, Sizes{0, 8}, Sizes{1, 1}, Sizes{1, 8}, Sizes{7, 8}, Sizes{8, 8},
                                         Sizes{9, 8}, Sizes{15, 8}, Sizes{16, 8}, Sizes{17, 8}, Sizes{100, 7},
                                         Sizes{kBlockValues - 1, kBlockValues}, Sizes{kBlockValues, kBlockValues},
                                         Sizes{kBlockValues + 1, kBlockValues}, Sizes{166342, kBlockValues}));

}  // namespace
}  // namespace hooke
