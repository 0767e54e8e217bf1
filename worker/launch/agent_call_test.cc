#include "worker/launch/agent_call.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_join.h"

namespace hooke {
namespace {

// ParseAgentCall reads the calls that the mpirun of each library makes, one of them with a prefix. A call that starts
// another program is not read as a daemon.
TEST(AgentCallTest, AgentCalls) {
  std::optional<AgentCall> call = ParseAgentCall(
      {"10.77.0.2", " orted", "-mca", "ess", "\"env\"", "-mca", "orte_hnp_uri", "\"20788.0;tcp://10.77.0.1:5066\""});
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->host, "10.77.0.2");
  EXPECT_EQ(absl::StrJoin(call->arguments, "|"), "-mca|ess|env|-mca|orte_hnp_uri|20788.0;tcp://10.77.0.1:5066");
  call = ParseAgentCall({"10.77.0.2", "PATH=/usr/bin:$PATH ; export PATH ; /usr/bin/orted", "-mca", "ess", "\"env\""});
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(absl::StrJoin(call->arguments, "|"), "-mca|ess|env");
  call = ParseAgentCall({"-x", "10.77.0.2", "\"/usr/bin/hydra_pmi_proxy\"", "--control-port", "10.77.0.1:40341"});
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->host, "10.77.0.2");
  EXPECT_EQ(absl::StrJoin(call->arguments, "|"), "--control-port|10.77.0.1:40341");
  call = ParseAgentCall({"-q", "-x", "10.77.0.2", "/opt/impi/bin//hydra_bstrap_proxy", "--upstream-host", "10.77.0.1",
                         "/opt/impi/bin//hydra_pmi_proxy", "--usize", "-1"});
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->host, "10.77.0.2");
  EXPECT_EQ(absl::StrJoin(call->arguments, "|"), "--upstream-host|10.77.0.1|/opt/impi/bin//hydra_pmi_proxy|--usize|-1");
  EXPECT_FALSE(ParseAgentCall({"10.77.0.2", "rm -rf /"}).has_value());
  EXPECT_FALSE(ParseAgentCall({"10.77.0.2"}).has_value());
  EXPECT_FALSE(ParseAgentCall({}).has_value());
}

}  // namespace
}  // namespace hooke
