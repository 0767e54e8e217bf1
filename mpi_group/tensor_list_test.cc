#include "mpi_group/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

std::vector<float> ValuesOf(const TensorList& list) {
  std::vector<float> values(list.size());
  Gather(list, MutableBytesOf(absl::MakeSpan(values)));
  return values;
}

// Every slice of a list of pieces, empty ones among them, is a view that holds the same values as the slice of one
// vector.
TEST(TensorListTest, EverySliceHoldsItsValues) {
  std::vector<float> a = {0, 1, 2};
  std::vector<float> b = {3};
  std::vector<float> c = {4, 5, 6, 7};
  const TensorList list({{}, absl::MakeSpan(a), {}, {}, absl::MakeSpan(b), absl::MakeSpan(c), {}});
  ASSERT_EQ(list.size(), 8);
  EXPECT_EQ(list.pieces().size(), 3);
  std::vector<float> all(8);
  std::iota(all.begin(), all.end(), 0);
  for (uint64_t begin = 0; begin <= 8; ++begin) {
    for (uint64_t end = begin; end <= 8; ++end) {
      const TensorList slice = list.Slice({begin, end});
      EXPECT_EQ(slice.size(), end - begin);
      EXPECT_THAT(ValuesOf(slice), ElementsAreArray(all.begin() + begin, all.begin() + end));
      for (absl::Span<char> piece : slice.pieces()) EXPECT_FALSE(piece.empty());
    }
  }
  *reinterpret_cast<float*>(list.Slice({2, 5}).pieces().back().data()) = 40;
  EXPECT_EQ(c[0], 40);
}

// A slice of a slice counts from the slice's begin.
TEST(TensorListTest, SliceOfSlice) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const TensorList list({absl::MakeSpan(values).first(3), absl::MakeSpan(values).last(3)});
  EXPECT_THAT(ValuesOf(list.Slice({1, 6}).Slice({1, 3})), ElementsAre(2, 3));
}

// Lists without values are empty, however they are made.
TEST(TensorListTest, EmptyLists) {
  for (const TensorList& list :
       {TensorList(), TensorList(absl::Span<float>()), TensorList(std::vector<absl::Span<float>>(3))}) {
    EXPECT_TRUE(list.empty());
    EXPECT_THAT(list.pieces(), IsEmpty());
    EXPECT_TRUE(list.Slice({0, 0}).empty());
  }
}

// The bytes of an incomplete last value are left out.
TEST(TensorListTest, IncompleteValuesAreLeftOut) {
  std::vector<float> values = {1, 2, 3};
  const absl::Span<char> bytes = MutableBytesOf(absl::MakeSpan(values));
  EXPECT_THAT(ValuesOf(TensorList(DataType::kFloat32, bytes.first(11))), ElementsAre(1, 2));
  EXPECT_THAT(ValuesOf(TensorList(DataType::kFloat32, {bytes.first(7), bytes.last(4)})), ElementsAre(1, 3));
  EXPECT_TRUE(TensorList(DataType::kFloat32, bytes.first(3)).empty());
}

// Scatter is the inverse of Gather.
TEST(TensorListTest, ScatterWritesTheValuesInOrder) {
  std::vector<float> a(2);
  std::vector<float> b(3);
  const std::vector<float> from = {1, 2, 3, 4, 5};
  Scatter(BytesOf(absl::MakeConstSpan(from)), TensorList({absl::MakeSpan(a), absl::MakeSpan(b)}));
  EXPECT_THAT(a, ElementsAre(1, 2));
  EXPECT_THAT(b, ElementsAre(3, 4, 5));
}

}  // namespace
}  // namespace hooke
