#include "clocks/process_age.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

constexpr char kBehindTheName[] = "S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 200 18446744073709551615";

// The name of the program may hold spaces and parentheses. Texts of another form give nothing.
TEST(ProcessAgeTest, ReadsTheStart) {
  EXPECT_EQ(StartIn(absl::StrCat("42 (hooke) ", kBehindTheName), 100), absl::Milliseconds(123450));
  EXPECT_EQ(StartIn(absl::StrCat("42 (a) b (c) ", kBehindTheName), 1000), absl::Milliseconds(12345));
  for (const char* bad :
       {"", "42 (hooke", "42 (hooke) S 1 2 3", "42 (hooke) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 x"}) {
    EXPECT_FALSE(StartIn(bad, 100).has_value()) << bad;
  }
  EXPECT_FALSE(StartIn(absl::StrCat("42 (hooke) ", kBehindTheName), 0).has_value());
}

// This process has begun within the last minutes, and its age grows.
TEST(ProcessAgeTest, OfThisProcess) {
  const absl::Duration first = ProcessAge();
  EXPECT_GE(first, absl::ZeroDuration());
  EXPECT_LT(first, absl::Minutes(10));
  EXPECT_GE(ProcessAge(), first);
}

}  // namespace
}  // namespace hooke
