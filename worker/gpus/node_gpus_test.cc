#include "worker/gpus/node_gpus.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

class NodeGpusTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  NodeGpusOptions Options(std::vector<GpuName> gpus, uint32_t slots) const { return {std::move(gpus), slots, file_}; }

  const std::string file_ = absl::StrCat(::testing::TempDir(), "/gpus", getpid());
};

std::string Names(const HeldGpus& held) {
  std::string text = held.shared() ? "shared" : "";
  for (const std::vector<GpuName>& of_rank : held.gpus_of_rank()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", absl::StrJoin(of_rank, ","));
  }
  return text;
}

// Two groups of a worker have different GPUs. Those of an ended group go to the next one.
TEST_F(NodeGpusTest, GroupsOfOneWorker) {
  NodeGpus worker(Options({"0", "1", "2", "3"}, 4));
  std::unique_ptr<HeldGpus> first = worker.Take(2, 0);
  const std::unique_ptr<HeldGpus> second = worker.Take(2, 0);
  EXPECT_EQ(Names(*first), "0 1");
  EXPECT_EQ(Names(*second), "2 3");
  first.reset();
  EXPECT_EQ(Names(*worker.Take(1, 0)), "0");
}

// Two workers on one machine take different GPUs as long as some are free.
TEST_F(NodeGpusTest, TwoWorkers) {
  NodeGpus a(Options({"GPU-a", "GPU-b"}, 2));
  NodeGpus b(Options({"GPU-a", "GPU-b"}, 2));
  const std::unique_ptr<HeldGpus> of_a = a.Take(1, 0);
  EXPECT_EQ(Names(*of_a), "GPU-a");
  {
    const std::unique_ptr<HeldGpus> of_b = b.Take(1, 0);
    EXPECT_EQ(Names(*of_b), "GPU-b");
    EXPECT_EQ(Names(*a.Take(1, 0)), "shared GPU-a");
  }
  EXPECT_EQ(Names(*b.Take(1, 0)), "GPU-b");
}

// With more slots than GPUs the ranks share them evenly. To another worker a GPU counts as used until the last rank on
// it has ended.
TEST_F(NodeGpusTest, SharedGpus) {
  NodeGpus worker(Options({"0", "1"}, 4));
  std::unique_ptr<HeldGpus> first = worker.Take(2, 0);
  std::unique_ptr<HeldGpus> second = worker.Take(1, 0);
  EXPECT_EQ(Names(*second), "shared 0");
  NodeGpus other(Options({"0"}, 1));
  first.reset();
  EXPECT_EQ(Names(*other.Take(1, 0)), "shared 0");
  second.reset();
  EXPECT_EQ(Names(*other.Take(1, 0)), "0");
}

TEST_F(NodeGpusTest, NoGpu) {
  NodeGpus worker(Options({}, 2));
  EXPECT_EQ(worker.Take(2, 0), nullptr);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

// A worker that cannot know of the others' ranks gives its GPUs all the same.
TEST_F(NodeGpusTest, NoFile) {
  NodeGpus worker({{"0", "1"}, 2, "/no/such/folder/gpus"});
  const std::unique_ptr<HeldGpus> held = worker.Take(2, 0);
  EXPECT_EQ(Names(*held), "0 1");
  EXPECT_EQ(held->others_unknown(), "/no/such/folder/gpus cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace hooke
