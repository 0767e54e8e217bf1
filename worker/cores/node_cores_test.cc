#include "worker/cores/node_cores.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class NodeCoresTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  // Returns a worker's cores, as many as it has slots: CPUs 0, 1, ...
  NodeCores Worker(uint32_t slots) const {
    NodeCoresOptions options;
    for (uint32_t cpu = 0; cpu < slots; ++cpu) options.cores.push_back({0, {static_cast<int>(cpu)}});
    options.slots = slots;
    options.file = file_;
    return NodeCores(options);
  }

  const std::string file_ = absl::StrCat(::testing::TempDir(), "/cores", getpid());
};

std::string Cpus(const HeldCores& held) {
  std::string text = held.choice().why_not;
  for (const std::vector<int>& cpus : held.choice().cpus_of_rank) absl::StrAppend(&text, CpuList(cpus), " ");
  return text;
}

// Two groups of a worker have different cores. Those of an ended group go to the next one.
TEST_F(NodeCoresTest, GroupsOfOneWorker) {
  const NodeCores worker = Worker(4);
  std::unique_ptr<HeldCores> first = worker.Take(2);
  const std::unique_ptr<HeldCores> second = worker.Take(2);
  EXPECT_EQ(Cpus(*first), "0 1 ");
  EXPECT_EQ(Cpus(*second), "2 3 ");
  EXPECT_THAT(Cpus(*worker.Take(1)), HasSubstr("0 of 4 cores are free"));
  first.reset();
  EXPECT_EQ(Cpus(*worker.Take(2)), "0 1 ");
}

// Two workers on one machine give no core twice, although neither knows the other.
TEST_F(NodeCoresTest, TwoWorkers) {
  const NodeCores a = Worker(4);
  const NodeCores b = Worker(3);
  const std::unique_ptr<HeldCores> of_a = a.Take(2);
  EXPECT_EQ(Cpus(*of_a), "0 1 ");
  EXPECT_THAT(Cpus(*b.Take(2)), HasSubstr("1 of 3 cores are free"));
  EXPECT_EQ(Cpus(*b.Take(1)), "2 ");
}

// A worker that is killed gives back its cores.
TEST_F(NodeCoresTest, KilledWorker) {
  const NodeCores worker = Worker(2);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::unique_ptr<HeldCores> held = worker.Take(2);
    const char said = held->choice().bound() ? 'y' : 'n';
    if (write(ready[1], &said, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_FALSE(worker.Take(1)->choice().bound());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(Cpus(*worker.Take(2)), "0 1 ");
  close(ready[0]);
  close(ready[1]);
}

// Many groups that start at once have disjoint cores.
TEST_F(NodeCoresTest, AllAtOnce) {
  constexpr int kGroups = 8;
  const NodeCores worker = Worker(2 * kGroups);
  std::vector<std::unique_ptr<HeldCores>> held(kGroups);
  std::vector<std::thread> threads;
  threads.reserve(kGroups);
  for (int i = 0; i < kGroups; ++i) threads.emplace_back([&, i] { held[i] = worker.Take(2); });
  for (std::thread& thread : threads) thread.join();
  std::set<int> given;
  for (const auto& one : held) {
    ASSERT_TRUE(one->choice().bound()) << one->choice().why_not;
    for (const std::vector<int>& cpus : one->choice().cpus_of_rank) given.insert(cpus.begin(), cpus.end());
  }
  EXPECT_EQ(given.size(), 2u * kGroups);
}

// Workers of other users may lock the file too. If it cannot be used, ranks are not bound, and the log says why.
TEST_F(NodeCoresTest, TheFile) {
  Worker(1).Take(1);
  struct stat file;
  ASSERT_EQ(stat(file_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0666u);
  EXPECT_EQ(file.st_size, 0);
  NodeCoresOptions options;
  options.cores = {{0, {0}}};
  options.file = "/no/such/folder/cores";
  EXPECT_EQ(Cpus(*NodeCores(options).Take(1)),
            "the ranks of other workers are not known, because /no/such/folder/cores cannot be opened: No such file or "
            "directory");
}

}  // namespace
}  // namespace hooke
