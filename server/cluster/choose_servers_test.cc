#include "server/cluster/choose_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

LiveServer Reached(const char* address, uint64_t center_bytes, bool own) {
  return {address, center_bytes, own, LiveServer::Reach::kReached, "", "id"};
}
LiveServer Failed(const char* address, const char* problem) {
  return {address, 0, false, LiveServer::Reach::kFailed, problem, "id"};
}
LiveServer BeingDialed(const char* address) { return {address, 0, false, LiveServer::Reach::kBeingDialed, "", "id"}; }

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
     {Reached("a:1", 9, false), Reached("b:1", 5, true), Reached("c:1", 0, false)},
     {"b:1", "a:1", "c:1"},
     "all that have joined, 3"},
    {"the emptiest, in the order of all jobs",
     2,
     {Reached("a:1", 9, false), Reached("b:1", 5, true), Reached("c:1", 0, false)},
     {"b:1", "c:1"},
     "the 2 of 3 that hold the fewest bytes"},
    {"ties: the coordinator's own, then by address",
     2,
     {Reached("c:1", 0, false), Reached("b:1", 0, false), Reached("d:1", 0, true)},
     {"d:1", "b:1"},
     "the 2 of 3 that hold the fewest bytes"},
    {"too few: the job waits", 3, {Reached("a:1", 0, true)}, {}, "3 servers needed, 1 has joined"},
    {"one cannot be reached: the others serve",
     0,
     {Reached("a:1", 9, false), Reached("b:1", 5, true), Failed("c:1", "advertises c:1, which is wrong")},
     {"b:1", "a:1"},
     "all that have joined, 2 of 3; one advertises c:1, which is wrong"},
    {"none can be reached",
     0,
     {Failed("c:1", "advertises c:1, which is wrong")},
     {},
     "no server can be used; one advertises c:1, which is wrong"},
    {"too few can be reached",
     2,
     {Reached("a:1", 0, true), Failed("c:1", "advertises c:1, which is wrong")},
     {},
     "2 servers needed, 2 have joined, 1 can be used; one advertises c:1, which is wrong"},
    {"all are wanted, and one is still being dialed",
     0,
     {Reached("a:1", 0, true), BeingDialed("c:1")},
     {},
     "all servers are wanted; one advertises c:1, where the coordinator is dialing it"},
    {"enough are reached, whatever becomes of the one that is being dialed",
     1,
     {Reached("a:1", 7, true), BeingDialed("c:1")},
     {"a:1"},
     "the 1 of 1 that hold the fewest bytes; one advertises c:1, where the coordinator is dialing it"},
    {"a reason tells three problems at most",
     0,
     {Failed("a:1", "is a"), Failed("b:1", "is b"), Failed("c:1", "is c"), Failed("d:1", "is d")},
     {},
     "no server can be used; one is a; one is b; one is c; and 1 more: see `hooke nodes`"},
    {"too few of two", 3, {Reached("a:1", 0, true), Reached("b:1", 0, false)}, {}, "3 servers needed, 2 have joined"},
};

// ChooseServers returns the servers and the reason of each row of the table above.
TEST(ChooseServersTest, Table) {
  for (const Case& c : kCases) {
    const ServerChoice choice = ChooseServers(c.wanted, c.live);
    std::vector<std::string> addresses;
    for (const JobServer& server : choice.servers) addresses.push_back(server.address);
    EXPECT_THAT(addresses, testing::ElementsAreArray(c.servers)) << c.name;
    EXPECT_EQ(choice.reason, c.reason) << c.name;
  }
}

}  // namespace
}  // namespace hooke
