#include "wire/address_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::HasSubstr;

// An empty address and any valid one are allowed. For the others the message says what is allowed.
TEST(AddressFaultTest, SaysWhatIsAllowed) {
  EXPECT_EQ(AddressFault(""), "");
  EXPECT_EQ(AddressFault("[::1]:0"), "");
  EXPECT_THAT(AddressFault("9090"), HasSubstr("is no address, allowed is HOST:PORT"));
  EXPECT_THAT(AddressFault("host:99999"), HasSubstr("99999"));
}

}  // namespace
}  // namespace hooke
