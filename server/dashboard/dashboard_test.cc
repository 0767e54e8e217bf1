#include "server/dashboard/dashboard.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// Whoever may not give orders to the coordinator may not give them through its page.
TEST(DashboardTest, APageHasThePermissionsOfTheCommand) {
  const ClusterToken none, token("0123456789abcdef");
  const HostPort here = {"127.0.0.1", 7480}, everywhere = {"0.0.0.0", 7480};
  EXPECT_EQ(WhyReadOnly(here, {"127.0.0.1", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(here, {"0.0.0.0", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(everywhere, {"0.0.0.0", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(everywhere, {"127.0.0.1", 7411}, token), "");
  EXPECT_EQ(
      WhyReadOnly(everywhere, {"127.0.0.1", 7411}, none),
      "this page only shows: other machines reach it at 0.0.0.0:7480, but the coordinator at 127.0.0.1:7411 takes "
      "orders of this machine only. Use `hooke` there, or start the servers with --token-file");
}

}  // namespace
}  // namespace hooke
