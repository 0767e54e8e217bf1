#include "worker/rank/group_dataset.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/in_process_group.h"

namespace hooke {
namespace {

constexpr absl::Duration kCollectiveTimeout = absl::Seconds(20);

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

class GroupDatasetTest : public testing::Test {
 protected:
  GroupDatasetTest() {
    std::string pattern = testing::TempDir() + "/group_dataset_test.XXXXXX";
    made_ = folder_ = mkdtemp(pattern.data());
  }
  ~GroupDatasetTest() override { std::filesystem::remove_all(made_); }

  std::string Prefix() const { return folder_ + "/set"; }

  // Writes a set of `images` images of 3 x 3. Pixels and labels differ from image to image.
  void Write(uint32_t images) const {
    std::string pixels, labels;
    for (uint32_t i = 0; i < images * 9; ++i) pixels.push_back(static_cast<char>(i * 7));
    for (uint32_t i = 0; i < images; ++i) labels.push_back(static_cast<char>(i % 10));
    std::ofstream(Prefix() + "-images-idx3-ubyte", std::ios::binary)
        << BigEndian(0x803) << BigEndian(images) << BigEndian(3) << BigEndian(3) << pixels;
    std::ofstream(Prefix() + "-labels-idx1-ubyte", std::ios::binary) << BigEndian(0x801) << BigEndian(images) << labels;
  }

  // Loads the set on `ranks` ranks and returns the result of each. Only rank 0 knows the folder, so any other rank that
  // reads would fail.
  std::vector<absl::StatusOr<IdxDataset>> LoadByRanks(int ranks) const {
    GroupOptions options;
    options.deadline = kCollectiveTimeout;
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks, options);
    std::vector<absl::StatusOr<IdxDataset>> loaded(groups.size(), absl::UnknownError("not returned"));
    std::vector<std::thread> threads;
    threads.reserve(groups.size());
    for (size_t rank = 0; rank < groups.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const IdxOptions idx{rank == 0 ? Prefix() : folder_ + "/of-another-rank"};
        loaded[rank] = LoadInGroup(*groups[rank], idx, kCollectiveTimeout);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return loaded;
  }

  std::string made_;
  std::string folder_;  // Folder of the files: `made_`, or a missing one below it.
};

// Only rank 0 reads files. Every rank gets the whole set, even if its bytes do not fill whole int32 values.
TEST_F(GroupDatasetTest, OneRankReadsForAll) {
  for (uint32_t images : {1, 2, 3, 4, 5, 1000}) {
    Write(images);
    const absl::StatusOr<IdxDataset> alone = IdxDataset::Load({Prefix()});
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (int ranks : {1, 2, 3}) {
      for (const absl::StatusOr<IdxDataset>& set : LoadByRanks(ranks)) {
        ASSERT_TRUE(set.ok()) << set.status();
        ASSERT_EQ(set->size(), images);
        EXPECT_EQ(set->rows(), 3u);
        EXPECT_EQ(set->columns(), 3u);
        EXPECT_EQ(set->normalization().mean, alone->normalization().mean);
        EXPECT_EQ(set->normalization().deviation, alone->normalization().deviation);
        for (uint32_t i = 0; i < images; ++i) {
          EXPECT_EQ(set->image(i), alone->image(i)) << i;
          EXPECT_EQ(set->label(i), alone->label(i)) << i;
        }
      }
    }
  }
}

// Every rank returns the same error for wrong files, because any rank's report may come first.
TEST_F(GroupDatasetTest, AllRanksSayWhatIsWrong) {
  // The message has the prefix twice. With a prefix of some 400 bytes it is nearly as long as an outcome that ranks
  // broadcast may be (1000 bytes).
  while (folder_.size() < 350) absl::StrAppend(&folder_, "/", std::string(40, 'a'));
  const absl::Status alone = IdxDataset::Load({Prefix()}).status();
  EXPECT_TRUE(absl::IsNotFound(alone)) << alone;
  for (const absl::StatusOr<IdxDataset>& set : LoadByRanks(3)) EXPECT_EQ(set.status(), alone);
}

}  // namespace
}  // namespace hooke
