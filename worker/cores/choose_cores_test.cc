#include "worker/cores/choose_cores.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

// Returns cores 0 to `count` - 1 with CPUs numbered as Linux does on x86: the first hardware threads of all cores come
// before the second ones. Each memory node has the same number of cores.
struct Shape {
  int count = 0;
  int threads = 1;
  int memory_nodes = 1;
};
std::vector<Core> Machine(Shape shape) {
  std::vector<Core> cores;
  for (int core = 0; core < shape.count; ++core) {
    cores.push_back({core * shape.memory_nodes / shape.count, {}});
    for (int thread = 0; thread < shape.threads; ++thread) {
      cores.back().cpus.push_back(core + thread * shape.count);
    }
  }
  return cores;
}

// Returns the ranks' CPUs as text, like "0 1-2", or why the ranks are not bound.
std::string Chosen(const std::vector<Core>& cores, const std::set<int>& taken, CoresWish wish) {
  const CoresChoice choice = ChooseCores(cores, taken, wish);
  std::string text = choice.why_not;
  for (const std::vector<int>& cpus : choice.cpus_of_rank) {
    absl::StrAppend(&text, text.empty() ? "" : " ", CpuList(cpus));
  }
  return text;
}

TEST(ChooseCoresTest, SharesOfWhatIsGiven) {
  EXPECT_EQ(CountShares(4, 16, 16), 4u);
  EXPECT_EQ(CountShares(2, 4, 16), 8u);
  EXPECT_EQ(CountShares(1, 3, 16), 6u);  // 16 / 6 CPUs: not more than 3.
  EXPECT_EQ(CountShares(3, 100, 16), 3u);
  EXPECT_EQ(CountShares(4096, 1, UINT32_MAX), UINT32_MAX);
}

// Each case is a machine, the CPUs that other ranks have, the worker's slots, the ranks that start, and their CPUs.
TEST(ChooseCoresTest, Table) {
  struct Case {
    const char* says;
    std::vector<Core> cores;
    std::set<int> taken;
    CoresWish wish;
    const char* chosen;
  };
  const std::vector<Core> holes = {{0, {2}}, {0, {3}}, {0, {7}}, {0, {9}}};
  const std::vector<Core> half_cores = {{0, {0}}, {0, {1, 5}}, {0, {2, 6}}};
  const Case cases[] = {
      {"a core for each rank", Machine({4}), {}, {4, 2}, "0 1"},
      {"the next group gets the next cores", Machine({4}), {0, 1}, {4, 2}, "2 3"},
      {"cores that were given back are used again", Machine({4}), {2, 3}, {4, 2}, "0 1"},
      {"fewer slots than cores: equal shares", Machine({8}), {}, {2, 2}, "0-3 4-7"},
      {"equal shares leave a rest", Machine({8}), {}, {3, 3}, "0-1 2-3 4-5"},
      {"one slot has all cores", Machine({4, 2, 2}), {}, {1, 1}, "0-7"},
      {"both hardware threads of a core", Machine({4, 2}), {}, {4, 3}, "0,4 1,5 2,6"},
      {"a core of which one thread is taken is not free", Machine({4, 2}), {5}, {4, 3}, "0,4 2,6 3,7"},
      {"more slots than cores: hardware threads", Machine({2, 2}), {}, {3, 3}, "0 2 1"},
      {"hardware threads, several for each slot", Machine({4, 4}), {}, {5, 2}, "0,4,8 1,5,12"},
      {"a mask with holes", holes, {}, {4, 4}, "2 3 7 9"},
      {"a mask with holes, shares of two", holes, {}, {2, 2}, "2-3 7,9"},
      {"a mask that has only one thread of a core", half_cores, {}, {3, 3}, "0 1,5 2,6"},
      {"a group stays on one socket", Machine({8, 1, 2}), {0, 1}, {8, 4}, "4 5 6 7"},
      {"a small group takes the fuller socket", Machine({8, 1, 2}), {0, 1}, {8, 2}, "2 3"},
      {"a large group: most ranks on the emptier socket", Machine({8, 1, 2}), {0, 1}, {8, 6}, "4 5 6 7 2 3"},
      {"no rank is spread over sockets", Machine({10, 1, 2}), {}, {5, 4}, "0-1 2-3 5-6 7-8"},
      {"but for what is left", Machine({10, 1, 2}), {}, {5, 5}, "0-1 2-3 5-6 7-8 4,9"},
      {"more slots than hardware threads", Machine({2}), {}, {4, 1}, "it has 4 slots, but only 2 hardware threads"},
      {"others have the cores",
       Machine({4}),
       {1},
       {2, 2},
       "2 ranks would get 2 cores each, but 3 of 4 cores are free: ranks of other groups or workers on this machine "
       "have the others"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.says);
    EXPECT_EQ(Chosen(c.cores, c.taken, c.wish), c.chosen);
  }
}

// Whatever is taken, bound ranks have disjoint shares of the same size, and none of the taken CPUs. They are bound if
// and only if enough cores are free.
TEST(ChooseCoresTest, SharesAreDisjointAndEqual) {
  const std::vector<Core> cores = Machine({6, 2, 2});
  for (unsigned taken_cores = 0; taken_cores < 64; ++taken_cores) {
    std::set<int> taken;
    uint32_t free = 6;
    for (int core = 0; core < 6; ++core) {
      if ((taken_cores >> core & 1) == 0) continue;
      taken.insert(core + 6);
      --free;
    }
    for (const uint32_t slots : {1, 2, 3, 6}) {
      for (uint32_t ranks = 1; ranks <= slots; ++ranks) {
        const CoresChoice choice = ChooseCores(cores, taken, {slots, ranks});
        ASSERT_EQ(choice.bound(), ranks * (6 / slots) <= free);
        ASSERT_EQ(choice.bound(), choice.why_not.empty());
        ASSERT_EQ(choice.cpus_of_rank.size(), choice.bound() ? ranks : 0);
        std::set<int> given = taken;
        for (const std::vector<int>& cpus : choice.cpus_of_rank) {
          ASSERT_EQ(cpus.size(), 2 * (6 / slots));
          for (const int cpu : cpus) ASSERT_TRUE(given.insert(cpu).second) << cpu;
        }
      }
    }
  }
}

TEST(CpuListTest, IsWrittenLikeTheKernels) {
  EXPECT_EQ(CpuList({}), "");
  EXPECT_EQ(CpuList({3}), "3");
  EXPECT_EQ(CpuList({0, 1, 2, 16, 17, 20}), "0-2,16-17,20");
}

// One line says who got which cores, or why nobody did. A part of a group names its own ranks.
TEST(SayCoresTest, OneLine) {
  EXPECT_EQ(SayCores(ChooseCores(Machine({2, 2}), {}, {2, 2}), "a", 4),
            "each rank on a has 1 core: rank 4 CPUs 0,2; rank 5 CPUs 1,3");
  EXPECT_EQ(SayCores(ChooseCores(Machine({2, 2}), {}, {4, 1}), "a", 0),
            "each rank on a has 1 hardware thread: rank 0 CPU 0");
  EXPECT_EQ(SayCores(ChooseCores(Machine({1}), {}, {2, 2}), "a", 0),
            "ranks on a are not bound to cores: it has 2 slots, but only 1 hardware thread");
}

}  // namespace
}  // namespace hooke
