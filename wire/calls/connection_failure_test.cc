#include "wire/calls/connection_failure.h"

#include <gtest/gtest.h>

#include "absl/strings/string_view.h"

namespace hooke {
namespace {

// An error of a connection that breaks, or was never made, differs from a server's answer.
TEST(IsConnectionFailureTest, Table) {
  for (const absl::string_view message :
       {"failed to connect to all addresses; last error: UNKNOWN: x", "Socket closed", "Connection reset by peer",
        "DNS resolution failed for nowhere:1: C-ares status", "no answer within 3s", ""}) {
    EXPECT_TRUE(IsConnectionFailure(message)) << message;
  }
  for (const absl::string_view message : {"the job store has not answered for 10 s", "restarting"}) {
    EXPECT_FALSE(IsConnectionFailure(message)) << message;
  }
}

// gRPC's message is shortened to its reason.
TEST(ConnectionTroubleTest, KeepsTheReason) {
  EXPECT_EQ(ConnectionTrouble("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to "
                              "connect to remote host: "
                              "Connection refused"),
            "Connection refused");
  EXPECT_EQ(ConnectionTrouble("failed to connect to all addresses; last error: UNAVAILABLE: closed"),
            "UNAVAILABLE: closed");
  EXPECT_EQ(ConnectionTrouble("Socket closed"), "Socket closed");
}

}  // namespace
}  // namespace hooke
