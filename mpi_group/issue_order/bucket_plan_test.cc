#include "mpi_group/issue_order/bucket_plan.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Describes each bucket as "first+count[begin,end)".
std::vector<std::string> Text(const std::vector<Bucket>& buckets) {
  std::vector<std::string> texts;
  texts.reserve(buckets.size());
  for (const Bucket& bucket : buckets) {
    texts.push_back(std::to_string(bucket.first_parameter) + "+" + std::to_string(bucket.parameters) + "[" +
                    std::to_string(bucket.values.begin) + "," + std::to_string(bucket.values.end) + ")");
  }
  return texts;
}

// The last parameters come first, and a bucket closes with the parameter that fills it.
TEST(BucketPlanTest, LastParametersFirst) {
  EXPECT_THAT(Text(PlanBuckets({100, 10, 50, 5}, 50)), ElementsAre("2+2[110,165)", "0+2[0,110)"));
  EXPECT_THAT(Text(PlanBuckets({100, 10, 50, 5}, 56)), ElementsAre("1+3[100,165)", "0+1[0,100)"));
}

// Buckets may be one for each parameter or one for all. Parameters without values belong to a bucket too.
TEST(BucketPlanTest, Extremes) {
  EXPECT_THAT(Text(PlanBuckets({3, 2, 1}, 1)), ElementsAre("2+1[5,6)", "1+1[3,5)", "0+1[0,3)"));
  EXPECT_THAT(Text(PlanBuckets({3, 2, 1}, UINT64_MAX)), ElementsAre("0+3[0,6)"));
  EXPECT_THAT(Text(PlanBuckets({3, 0, 1}, 1)), ElementsAre("2+1[3,4)", "0+2[0,3)"));
  EXPECT_THAT(Text(PlanBuckets({0}, 1)), ElementsAre("0+1[0,0)"));
  EXPECT_THAT(PlanBuckets({}, 1), IsEmpty());
}

// For all sizes buckets cover the vector from its end to its begin without gap or overlap. All but the last one are
// full, and none would be full without its first parameter.
TEST(BucketPlanTest, CoversEverythingOnce) {
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    std::vector<uint64_t> sizes(random() % 12 + 1);
    uint64_t end = 0;
    for (uint64_t& size : sizes) end += size = random() % 100;
    const uint64_t wanted = random() % 150 + 1;
    size_t last = sizes.size();
    const std::vector<Bucket> buckets = PlanBuckets(sizes, wanted);
    for (const Bucket& bucket : buckets) {
      EXPECT_EQ(bucket.first_parameter + bucket.parameters, last);
      EXPECT_EQ(bucket.values.end, end);
      if (&bucket != &buckets.back()) {
        EXPECT_GE(bucket.values.size(), wanted);
      }
      EXPECT_LT(bucket.values.size() - sizes[bucket.first_parameter], wanted);
      last = bucket.first_parameter;
      end = bucket.values.begin;
    }
    EXPECT_EQ(last, 0u);
    EXPECT_EQ(end, 0u);
  }
}

}  // namespace
}  // namespace hooke
