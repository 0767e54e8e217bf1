#include "worker/daemon/cut_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::RankProgress Misses(std::initializer_list<std::string> servers) {
  v1::RankProgress progress;
  for (const std::string& server : servers) progress.add_absent_servers()->set_address(server);
  return progress;
}

// A rank knows only of the servers with which it exchanges. So a group misses all servers if each is missed by a rank.
TEST(MissedServersTest, CountsTheServersOfAllRanks) {
  MissedServers missed({"a:1", "b:1"});
  EXPECT_FALSE(missed.All());
  missed.Take(0, Misses({"a:1"}));
  EXPECT_FALSE(missed.All()) << "b answers";
  missed.Take(1, Misses({"b:1"}));
  EXPECT_TRUE(missed.All());
  missed.Take(0, Misses({}));
  EXPECT_FALSE(missed.All()) << "a answers again";
  missed.Take(1, Misses({"b:1", "a:1"}));
  EXPECT_TRUE(missed.All());
  missed.Take(1, Misses({"c:1"}));
  EXPECT_FALSE(missed.All());
}

// A group that trains without servers cannot be cut off from them.
TEST(MissedServersTest, IsFalseWithoutServers) {
  MissedServers missed({});
  missed.Take(0, Misses({"a:1"}));
  EXPECT_FALSE(missed.All());
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
