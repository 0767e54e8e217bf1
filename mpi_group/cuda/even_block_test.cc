// Tests which parts of a list NCCL's own all-gather and reduce-scatter can take. Needs no device.

#include "mpi_group/cuda/even_block.h"

#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

TEST(EvenBlock, EqualPartsSideBySideInOnePiece) {
  std::vector<float> first(4);
  std::vector<float> second(6);
  const TensorList list{absl::MakeSpan(first), absl::MakeSpan(second)};
  const auto begin_and_bytes = [&](const std::vector<ValueRange>& parts) -> std::pair<const void*, uint64_t> {
    const auto block = EvenBlock(list, parts);
    if (!block.has_value()) return {nullptr, 0};
    return {block->data(), block->size()};
  };
  using Found = std::pair<const void*, uint64_t>;
  const Found none = {nullptr, 0};
  EXPECT_EQ(begin_and_bytes({{4, 7}, {7, 10}}), Found(second.data(), 24));
  EXPECT_EQ(begin_and_bytes({{5, 7}, {7, 9}}), Found(&second[1], 16));
  EXPECT_EQ(begin_and_bytes({{1, 4}}), Found(&first[1], 12));
  EXPECT_EQ(begin_and_bytes({{0, 5}, {5, 10}}), none) << "two pieces";
  EXPECT_EQ(begin_and_bytes({{4, 7}, {7, 9}}), none) << "of different lengths";
  EXPECT_EQ(begin_and_bytes({{4, 6}, {7, 9}}), none) << "a gap";
  EXPECT_EQ(begin_and_bytes({{4, 4}, {4, 4}}), none) << "nothing";
  EXPECT_EQ(begin_and_bytes({}), none) << "no parts";
}

}  // namespace
}  // namespace hooke
