#include "worker/training/gradient_buckets.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

constexpr DataType kWide = DataType::kFloat32;
constexpr DataType kNarrow = DataType::kBFloat16;
constexpr DataType kHalf = DataType::kFloat16;

class GradientBucketsTest : public ::testing::Test {
 protected:
  // Adds a gradient of this many values, right behind the one before.
  void Add(DataType type, uint64_t values) {
    const uint64_t bytes = values * SizeOf(type);
    gradients_.push_back({type, absl::MakeSpan(memory_).subspan(end_, bytes)});
    end_ += bytes;
  }

  std::vector<std::string> Plan(uint64_t bucket_bytes) const {
    std::vector<std::string> said;
    for (const TypedBucket& bucket : PlanTypedBuckets(gradients_, bucket_bytes)) {
      said.push_back(absl::StrCat(NameOf(bucket.type), " ", absl::StrJoin(bucket.parameters, ",")));
    }
    return said;
  }

  std::vector<char> memory_ = std::vector<char>(10'000);
  uint64_t end_ = 0;
  std::vector<TypedGradient> gradients_;
};

// Each type has buckets of its own, in the order in which backward completes them. The loss's bucket is the last.
TEST_F(GradientBucketsTest, OfEachType) {
  Add(kNarrow, 100);
  Add(kWide, 10);
  Add(kNarrow, 100);
  Add(kWide, 10);
  Add(kHalf, 1);
  EXPECT_THAT(Plan(1), ElementsAre("float16 4", "float32 3", "bfloat16 2", "bfloat16 0", "float32 1"));
  EXPECT_THAT(Plan(300), ElementsAre("float16 4", "bfloat16 2,0", "float32 3,1"));
  EXPECT_THAT(Plan(UINT64_MAX), ElementsAre("float16 4", "bfloat16 2,0", "float32 3,1"));
}

// The bucket for the loss is there even if no gradient is float32.
TEST_F(GradientBucketsTest, WithoutFloat32) {
  EXPECT_THAT(Plan(1), ElementsAre("float32 "));
  Add(kNarrow, 3);
  Add(kNarrow, 5);
  EXPECT_THAT(Plan(8), ElementsAre("bfloat16 1", "bfloat16 0", "float32 "));
}

// Neighbours travel as one piece. A gradient of another type between them cuts it.
TEST_F(GradientBucketsTest, Lists) {
  Add(kNarrow, 3);
  Add(kNarrow, 5);
  Add(kWide, 2);
  Add(kNarrow, 1);
  const TensorList list = ListOf(gradients_, {kNarrow, {3, 1, 0}});
  EXPECT_EQ(list.type(), kNarrow);
  EXPECT_EQ(list.size(), 9u);
  ASSERT_EQ(list.pieces().size(), 2u);
  EXPECT_EQ(list.pieces()[0].data(), memory_.data());
  EXPECT_EQ(list.pieces()[0].size(), 16u);
  EXPECT_EQ(list.pieces()[1].data(), memory_.data() + 24);
}

}  // namespace
}  // namespace hooke
