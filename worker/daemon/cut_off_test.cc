#include "worker/daemon/cut_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hooke {
namespace {

using ::testing::HasSubstr;

// The report of a rank that exchanges with `servers` servers and misses `missed` of them.
v1::RankProgress Rank(uint32_t servers, int missed) {
  v1::RankProgress progress;
  progress.set_servers(servers);
  for (int i = 0; i < missed; ++i) progress.add_absent_servers()->set_address("a:1");
  return progress;
}

// Each rank exchanges with other servers. So a group is cut off only if every rank misses all of its own.
TEST(MissedServersTest, AllRanksMissTheirServers) {
  MissedServers missed;
  EXPECT_FALSE(missed.All());
  missed.Take(0, Rank(2, 2));
  EXPECT_TRUE(missed.All());
  missed.Take(1, Rank(2, 1));
  EXPECT_FALSE(missed.All()) << "rank 1 reaches a server";
  missed.Take(1, Rank(2, 2));
  EXPECT_TRUE(missed.All());
  missed.Take(0, Rank(2, 0));
  EXPECT_FALSE(missed.All()) << "rank 0 reaches its servers again";
}

// A rank without a slice of the center has no servers, and says nothing about them. A group without servers, or a rank
// that has not attached yet, cannot be cut off from them.
TEST(MissedServersTest, RanksWithoutServersDoNotCount) {
  MissedServers missed;
  missed.Take(0, Rank(0, 0));
  EXPECT_FALSE(missed.All());
  missed.Take(1, Rank(1, 1));
  EXPECT_TRUE(missed.All());
  missed.Take(0, Rank(0, 0));
  EXPECT_TRUE(missed.All());
}

// A group ends before its worker's lease does, if it reaches nobody. While it reaches a server it goes on, however long
// the coordinator is away. So it does without a lease, with an older coordinator.
TEST(WhyCutOffTest, EndsBeforeTheLease) {
  const absl::Time heard = absl::UnixEpoch() + absl::Hours(1);
  struct {
    absl::Duration lease;
    bool misses_all;
    absl::Duration silence;
    bool ends;
  } cases[] = {
      {absl::Seconds(10), true, absl::Milliseconds(8999), false},
      {absl::Seconds(10), true, absl::Seconds(9), true},
      {absl::Seconds(10), true, absl::Hours(1), true},
      {absl::Seconds(10), false, absl::Hours(1), false},
      {absl::Seconds(5), true, absl::Milliseconds(4499), false},
      {absl::Seconds(5), true, absl::Milliseconds(4500), true},
      {absl::ZeroDuration(), true, absl::Hours(1), false},
      {absl::Hours(24), true, absl::Hours(21), false},
  };
  for (const auto& c : cases) {
    const absl::Status why = WhyCutOff({heard, c.lease}, c.misses_all, heard + c.silence);
    EXPECT_EQ(!why.ok(), c.ends) << absl::FormatDuration(c.lease) << " " << absl::FormatDuration(c.silence);
  }
}

// The text says what has not answered, and why that ends the group. The code is that of a group that was stopped: it is
// no failure of its worker, and the group starts again.
TEST(WhyCutOffTest, SaysWhy) {
  const absl::Status why =
      WhyCutOff({absl::UnixEpoch(), absl::Seconds(10)}, true, absl::UnixEpoch() + absl::Milliseconds(9137));
  EXPECT_EQ(why.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(why.message()),
              HasSubstr("has not answered this worker for 9.1s, and the group reaches none"));
}

}  // namespace
}  // namespace hooke
