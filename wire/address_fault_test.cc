#include "wire/address_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::HasSubstr;

// No address and any good one are allowed. The others are told what is.
TEST(AddressFaultTest, SaysWhatIsAllowed) {
  EXPECT_EQ(AddressFault(""), "");
  EXPECT_EQ(AddressFault("[::1]:0"), "");
  EXPECT_THAT(AddressFault("9090"), HasSubstr("is no address, allowed is HOST:PORT"));
  EXPECT_THAT(AddressFault("host:99999"), HasSubstr("99999"));
}

}  // namespace
}  // namespace hooke
