// Which ends of a group count as the same.

#include "server/scheduling/causes.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

using absl::StatusCode;

std::string Cause(const std::string& message, StatusCode code = StatusCode::kAborted) {
  return CauseOf(code, message, {"gpu-a", "10.0.0.7"});
}

// Ranks, processes, ports, hosts, steps and addresses in memory differ from start to start, and are left out.
TEST(CausesTest, EqualButForNumbersPortsAndHosts) {
  EXPECT_EQ(Cause("rank 0 (pid 17): exit status 3"), "ABORTED: rank # (pid #): exit status 3");
  EXPECT_EQ(Cause("rank 0 (pid 17): exit status 3"), Cause("rank 12 (pid 4711): exit status 3"));
  EXPECT_EQ(Cause("bind 10.0.0.1:4001: address in use."), Cause("bind node.a.org:39999: address in use."));
  EXPECT_EQ(Cause("worker gpu-a: no memory"), Cause("worker 10.0.0.7: no memory"));
  EXPECT_EQ(Cause("w17 lost after 1.5s, at 0x7fff10"), Cause("w3 lost after 20.25s, at 0xabcde"));
  EXPECT_EQ(Cause("server [::1]:80: gone"), Cause("server [::1]:8080: gone"));
  EXPECT_EQ(Cause(""), "ABORTED: ");
  EXPECT_EQ(Cause(": - ."), "ABORTED: : - .");
}

// The status code, the exit status, the signal and the words tell ends apart.
TEST(CausesTest, DifferInStatusSignalAndWords) {
  EXPECT_NE(Cause("rank 0: exit status 3"), Cause("rank 0: exit status 4"));
  EXPECT_NE(Cause("ended by signal 9 (Killed)"), Cause("ended by signal 11 (Segmentation fault)"));
  EXPECT_NE(Cause("x"), Cause("x", StatusCode::kInternal));
  EXPECT_NE(Cause("no file a"), Cause("no file b"));
  EXPECT_NE(Cause("worker gpu-a: x"), Cause("worker gpu: x")) << "only whole names are hosts";
}

}  // namespace
}  // namespace hooke
