#include "server/cluster/server_dial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using What = DialVerdict::What;

const ServerClaim kClaim = {"11111111aaaa", "p1", "a:1"};

struct DialCase {
  const char* name;
  DialAnswer answer;
  const char* same_address;
  What what;
  const char* problem;
};

const DialCase kDials[] = {
    {"it is there", {absl::OkStatus(), "11111111aaaa", "p1"}, "", What::kReached, ""},
    {"it is there, and another one says the same address",
     {absl::OkStatus(), "11111111aaaa", "p1"},
     "22222222bbbb",
     What::kReached,
     ""},
    {"nobody is there",
     {absl::UnavailableError("connection refused"), "", ""},
     "",
     What::kMaybe,
     "advertises a:1, which the coordinator cannot reach: connection refused; check --advertise"},
    {"it does not know the coordinator's token",
     {absl::UnauthenticatedError("this cluster wants a token"), "", ""},
     "",
     What::kMaybe,
     "advertises a:1, where the coordinator is refused: this cluster wants a token"},
    {"nobody is there, where two say they are",
     {absl::UnavailableError("connection refused"), "", ""},
     "22222222bbbb",
     What::kMaybe,
     "advertises a:1, which the coordinator cannot reach: connection refused; check --advertise. Server 22222222 "
     "advertises the same address"},
    {"another server of this cluster is there",
     {absl::OkStatus(), "22222222bbbb", "p2"},
     "22222222bbbb",
     What::kElsewhere,
     "advertises a:1, but a:1 is also advertised by server 22222222, which answers there; give --advertise an address "
     "that workers reach"},
    {"a server of another cluster is there",
     {absl::OkStatus(), "33333333cccc", "p3"},
     "",
     What::kElsewhere,
     "advertises a:1, but another server, 33333333, answers there; give --advertise an address that workers reach"},
    {"a server without an identity is there",
     {absl::OkStatus(), "", ""},
     "",
     What::kElsewhere,
     "advertises a:1, where something else answers; give --advertise an address that workers reach"},
    {"a copy of it is there",
     {absl::OkStatus(), "11111111aaaa", "p2"},
     "",
     What::kMaybe,
     "advertises a:1, but another server with the same identity answers there: one has a copy of the other's "
     "--state-dir; stop it, and start it with an empty one"},
};

// JudgeDial gives the verdict and the problem of each row of the table above.
TEST(ServerDialTest, JudgesAnswers) {
  for (const DialCase& c : kDials) {
    const DialVerdict verdict = JudgeDial(kClaim, c.answer, c.same_address);
    EXPECT_EQ(verdict.what, c.what) << c.name;
    EXPECT_EQ(verdict.problem, c.problem) << c.name;
  }
}

// A server that moved or started again may go on as the same server. A server on a copy of its folder may not, while
// the first one lives.
TEST(ServerDialTest, ContestsCopies) {
  const auto refused = [](const ServerClaim& claim, bool known_lives, const std::string& replaced = "") {
    return !ContestClaim(claim, kClaim, known_lives, replaced).empty();
  };
  EXPECT_FALSE(refused(kClaim, true));
  EXPECT_FALSE(refused({kClaim.server_id, "p2", "a:1"}, true)) << "it started again where it was";
  EXPECT_TRUE(refused({kClaim.server_id, "p2", "b:1"}, true)) << "both live";
  EXPECT_FALSE(refused({kClaim.server_id, "p2", "b:1"}, false)) << "it moved";
  EXPECT_TRUE(refused({kClaim.server_id, "p0", "a:1"}, true, "p0")) << "the process before is back: both live";
  EXPECT_FALSE(refused({kClaim.server_id, "p0", "a:1"}, false, "p0"));
  EXPECT_EQ(ContestClaim({kClaim.server_id, "p2", "b:1"}, kClaim, true, ""),
            "advertises b:1, but has the identity 11111111 of a server that is alive at a:1: one has a copy of the "
            "other's --state-dir; stop it, and start it with an empty one. A server that was moved is taken some "
            "seconds after it was stopped at its old address");
}

// Pauses grow to at most five seconds, so a server that works again is soon found.
TEST(ServerDialTest, Pauses) {
  EXPECT_EQ(PauseAfterDials(1), absl::Milliseconds(500));
  EXPECT_EQ(PauseAfterDials(3), absl::Seconds(2));
  EXPECT_EQ(PauseAfterDials(5), absl::Seconds(5));
  EXPECT_EQ(PauseAfterDials(4000000000), absl::Seconds(5));
}

}  // namespace
}  // namespace hooke
