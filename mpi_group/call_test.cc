#include "mpi_group/call.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// Even parts follow each other, cover everything, and differ by at most one value.
TEST(CallTest, EvenPartsCoverAllValues) {
  for (uint64_t values : {0, 1, 2, 7, 8, 9, 100003}) {
    for (int n = 1; n <= 8; ++n) {
      uint64_t end = 0;
      for (const ValueRange& part : EvenParts(values, n)) {
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(part.size() == values / n || part.size() == values / n + 1);
        end = part.end;
      }
      EXPECT_EQ(end, values);
    }
  }
}

// Chunks cover a range in order. Chunks past the range's end are empty, so that ranks with shorter ranges can take
// equally many.
TEST(CallTest, ChunksCoverARange) {
  const ValueRange range = {10, 31};
  EXPECT_EQ(ChunkCount(range, 10), 3);
  EXPECT_EQ(Chunk(range, 0, 10).begin, 10);
  EXPECT_EQ(Chunk(range, 2, 10).begin, 30);
  EXPECT_EQ(Chunk(range, 2, 10).end, 31);
  EXPECT_EQ(Chunk(range, 3, 10).size(), 0);
  EXPECT_EQ(ChunkCount({5, 5}, 10), 0);
}

// Equal parts have equal hashes. The hash changes with any boundary and with each value mixed in.
TEST(CallTest, HashTellsPartsApart) {
  const Parts parts = EvenParts(10, 3);
  Parts others = parts;
  EXPECT_EQ(HashOf(parts), HashOf(others));
  EXPECT_EQ(HashOf({}), 0);
  others[2].end = 9;
  EXPECT_NE(HashOf(parts), HashOf(others));
  EXPECT_NE(HashOf(parts), HashOf(EvenParts(10, 2)));
  EXPECT_NE(Mix(HashOf(parts), 4096), Mix(HashOf(parts), 8192));
}

// A list of one piece is used where it lies. A list of several pieces is copied.
TEST(CallTest, ContiguousListsAreNotCopied) {
  std::vector<float> values = {1, 2, 3, 4};
  std::vector<char> buffer;
  EXPECT_EQ(static_cast<const void*>(ContiguousValues(TensorList(absl::MakeSpan(values)), buffer).data()),
            values.data());
  EXPECT_TRUE(ContiguousValues(TensorList(), buffer).empty());
  EXPECT_TRUE(buffer.empty());
  const TensorList pieces({absl::MakeSpan(values).first(1), absl::MakeSpan(values).last(2)});
  const std::vector<float> expected = {1, 3, 4};
  EXPECT_EQ(ContiguousValues(pieces, buffer), BytesOf(absl::MakeConstSpan(expected)));
}

// A ring's parts are cut into as many chunks as are under way at once, but none is shorter than 16 KiB or longer than a
// message may be.
TEST(CallTest, ChunksOfARing) {
  constexpr uint64_t kKi = 1024;
  EXPECT_EQ(RingChunkValues({100, 4, 64 * kKi, 4}), 4 * kKi);
  EXPECT_EQ(RingChunkValues({20 * kKi, 4, 64 * kKi, 4}), 5 * kKi);
  EXPECT_EQ(RingChunkValues({20 * kKi + 1, 4, 64 * kKi, 4}), 5 * kKi + 1);
  EXPECT_EQ(RingChunkValues({1000 * kKi, 4, 64 * kKi, 4}), 16 * kKi);
  EXPECT_EQ(RingChunkValues({1000 * kKi, 4, 1 * kKi, 4}), 256);
  EXPECT_EQ(RingChunkValues({20 * kKi, 4, 128 * kKi, 1}), 20 * kKi);
}

}  // namespace
}  // namespace hooke
