#include "server/coordinator/choose_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

struct Case {
  const char* name;
  uint32_t wanted;
  std::vector<LiveServer> live;
  std::vector<std::string> servers;
  const char* reason;
};

const Case kCases[] = {
    {"none", 0, {}, {}, "no server has joined"},
    {"none, one wanted", 1, {}, {}, "no server has joined"},
    {"all, the coordinator's own first",
     0,
     {{"a:1", 9, false}, {"b:1", 5, true}, {"c:1", 0, false}},
     {"b:1", "a:1", "c:1"},
     "all that have joined, 3"},
    {"the emptiest, in the order of all jobs",
     2,
     {{"a:1", 9, false}, {"b:1", 5, true}, {"c:1", 0, false}},
     {"b:1", "c:1"},
     "the 2 of 3 that hold the fewest bytes"},
    {"ties: the coordinator's own, then by address",
     2,
     {{"c:1", 0, false}, {"b:1", 0, false}, {"d:1", 0, true}},
     {"d:1", "b:1"},
     "the 2 of 3 that hold the fewest bytes"},
    {"too few: the job waits", 3, {{"a:1", 0, true}}, {}, "3 servers needed, 1 has joined"},
    {"too few of two", 3, {{"a:1", 0, true}, {"b:1", 0, false}}, {}, "3 servers needed, 2 have joined"},
};

// The table above: who holds a center, and why.
TEST(ChooseServersTest, Table) {
  for (const Case& c : kCases) {
    const ServerChoice choice = ChooseServers(c.wanted, c.live);
    EXPECT_THAT(choice.servers, testing::ElementsAreArray(c.servers)) << c.name;
    EXPECT_EQ(choice.reason, c.reason) << c.name;
  }
}

}  // namespace
}  // namespace hooke
