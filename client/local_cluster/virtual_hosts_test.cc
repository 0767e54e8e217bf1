#include "client/local_cluster/virtual_hosts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(VirtualHostsTest, RatesAreNumbersWithAUnit) {
  for (const std::string rate : {"1gbit", "100mbit", "2.5gbit", "512kbit"}) EXPECT_EQ(LinkRateFault(rate), "") << rate;
  for (const std::string rate : {"", "gbit", "1gb", "1", "-1gbit", "0gbit", "nanmbit", "1gbit; reboot", "1;ls gbit"}) {
    EXPECT_THAT(LinkRateFault(rate), HasSubstr("is no rate; write a number with kbit, mbit or gbit")) << rate;
  }
}

TEST(VirtualHostsTest, LinksAreLimitedInBothDirections) {
  const std::string script = MakeNetworkScript({2, "1gbit", absl::Milliseconds(20)}, 7);
  EXPECT_THAT(script, HasSubstr("tc -n hooke-7-2 qdisc add dev eth0 root handle 1: tbf rate 1gbit "));
  EXPECT_THAT(script, HasSubstr("tc -n hooke-7-switch qdisc add dev port2 root tbf rate 1gbit "));
  EXPECT_THAT(script, HasSubstr("tc -n hooke-7-1 qdisc add dev eth0 parent 1:1 netem delay 20000us "));
  EXPECT_THAT(script, HasSubstr("ip -n hooke-7-2 address add 198.18.7.2/24 dev eth0\n"));
}

TEST(VirtualHostsTest, LinksWithoutALimitHaveNone) {
  EXPECT_THAT(MakeNetworkScript({2, "", absl::ZeroDuration()}, 7), Not(HasSubstr("tc ")));
  EXPECT_THAT(MakeNetworkScript({1, "", absl::Microseconds(1500)}, 7),
              HasSubstr("tc -n hooke-7-1 qdisc add dev eth0 root netem delay 1500us "));
}

// The owner is the path of a folder that a user has chosen. The script quotes it, and cuts it to the 255 bytes that the
// kernel keeps.
TEST(VirtualHostsTest, TheOwnersNameIsQuotedAndCut) {
  EXPECT_THAT(ClaimNetworkScript(7, "/it's; reboot"), HasSubstr(" alias '/it'\\''s; reboot' ||"));
  EXPECT_THAT(ClaimNetworkScript(7, std::string(300, 'a')), HasSubstr(" '" + std::string(255, 'a') + "' ||"));
}

}  // namespace
}  // namespace hooke
