#include "wire/random_hex.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// The text has eight digits for each word, and two texts differ.
TEST(RandomHex, HasDigitsThatDiffer) {
  const std::string one = RandomHex(4);
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), one.npos);
  EXPECT_NE(one, RandomHex(4));
  EXPECT_EQ(RandomHex(2).size(), 16u);
}

}  // namespace
}  // namespace hooke
