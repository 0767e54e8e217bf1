#include "algorithms/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hooke {
namespace {

// The vectorized checks agree with checks of one value at a time, wherever a bad value stands among 1 to 39 values.
TEST(Finite, SaysWhatEachValueSays) {
  const float bound = std::ldexp(1.0f, 126);
  const float largest = std::numeric_limits<float>::max();
  const float infinity = std::numeric_limits<float>::infinity();
  const float below = std::nextafter(bound, 0.0f);
  for (const float special : {0.0f, -0.0f, 1e-45f, below, -below, bound, -bound, largest, -largest, infinity, -infinity,
                              std::nanf(""), -std::nanf("1")}) {
    for (size_t count = 1; count < 40; ++count) {
      for (size_t at = 0; at < count; ++at) {
        std::vector<float> values(count, -1.5f);
        values[at] = special;
        ASSERT_EQ(AllFinite(values), std::isfinite(special)) << special << " at " << at << " of " << count;
        ASSERT_EQ(AllModerate(values), std::fabs(special) < bound) << special << " at " << at << " of " << count;
      }
    }
  }
  EXPECT_TRUE(AllFinite({}));
  EXPECT_TRUE(AllModerate({}));
}

}  // namespace
}  // namespace hooke
