#include "job/near_name.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// The nearest name is returned, and the first one among equals. If no name is near, the result is empty.
TEST(NearNameTest, Nearest) {
  EXPECT_EQ(Nearest("fashon-1", {"fashion-1", "mnist-1"}), "fashion-1");
  EXPECT_EQ(Nearest("fashion-9", {"fashion-3", "fashion-2"}), "fashion-3");
  EXPECT_EQ(Nearest("cifar-1", {"fashion-1", "mnist-1"}), "");
  EXPECT_EQ(Nearest("", {"a"}), "");
  EXPECT_EQ(Nearest("a", {}), "");
  EXPECT_EQ(Nearest(std::string(65, 'a'), {std::string(64, 'a')}), "") << "bounded";
}

}  // namespace
}  // namespace hooke
