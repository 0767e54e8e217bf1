// Which files leave a full cache: the least recently used ones, never those in use, and no more than necessary.

#include "worker/file_cache/choose_evictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CachedFile File(const std::string& name, uint64_t bytes, uint64_t used, bool in_use = false) {
  return {name, bytes, used, in_use};
}

TEST(ChooseEvictionsTest, TheOldestLeaveFirst) {
  const std::vector<CachedFile> files = {File("new", 40, 9), File("old", 30, 1), File("mid", 30, 5)};
  EXPECT_THAT(*ChooseEvictions(files, 0, 100), IsEmpty());
  EXPECT_THAT(*ChooseEvictions(files, 1, 100), ElementsAre("old"));
  EXPECT_THAT(*ChooseEvictions(files, 30, 100), ElementsAre("old"));
  EXPECT_THAT(*ChooseEvictions(files, 31, 100), ElementsAre("old", "mid"));
  EXPECT_THAT(*ChooseEvictions(files, 100, 100), ElementsAre("old", "mid", "new"));
}

TEST(ChooseEvictionsTest, FilesInUseStay) {
  const std::vector<CachedFile> files = {File("old", 30, 1, true), File("mid", 30, 5), File("new", 40, 9)};
  EXPECT_THAT(*ChooseEvictions(files, 30, 100), ElementsAre("mid"));
  EXPECT_THAT(*ChooseEvictions(files, 70, 100), ElementsAre("mid", "new"));
  const absl::Status status = ChooseEvictions(files, 71, 100).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("groups that run here use 30 bytes of the 100 bytes"));
}

// Waiting does not help a job that is larger than the cache.
TEST(ChooseEvictionsTest, TooLargeForTheCache) {
  EXPECT_EQ(ChooseEvictions({}, 101, 100).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(*ChooseEvictions({}, 100, 100), IsEmpty());
}

TEST(ChooseEvictionsTest, OnAFullDiskTheOldestLeaveAndThoseInUseStay) {
  const std::vector<CachedFile> files = {File("new", 40, 9), File("old", 30, 1), File("used", 50, 3, true),
                                         File("mid", 30, 5)};
  EXPECT_THAT(ChooseForDisk(files, 0), ElementsAre("old"));  // The disk may lack inodes, not bytes.
  EXPECT_THAT(ChooseForDisk(files, 30), ElementsAre("old"));
  EXPECT_THAT(ChooseForDisk(files, 31), ElementsAre("old", "mid"));
  EXPECT_THAT(ChooseForDisk(files, 100), ElementsAre("old", "mid", "new"));
  EXPECT_THAT(ChooseForDisk(files, 1000), ElementsAre("old", "mid", "new"));
  EXPECT_THAT(ChooseForDisk({File("used", 50, 3, true)}, 1), IsEmpty());
  EXPECT_THAT(ChooseForDisk({}, 1), IsEmpty());
}

// Whatever a cache holds: what stays fits, nothing in use leaves, and without the last eviction it would not fit.
TEST(ChooseEvictionsTest, HoldsForCachesByChance) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 engine(seed);
    std::vector<CachedFile> files;
    for (uint32_t i = engine() % 12; i > 0; --i) {
      files.push_back(File(absl::StrCat(i), engine() % 50, engine() % 9, engine() % 4 == 0));
    }
    const uint64_t need = engine() % 100;
    const absl::StatusOr<std::vector<std::string>> leave = ChooseEvictions(files, need, 200);
    uint64_t in_use = 0;
    uint64_t stays = 0;
    uint64_t last = 0;
    for (const CachedFile& file : files) {
      if (file.in_use) in_use += file.bytes;
      const bool leaves = leave.ok() && std::find(leave->begin(), leave->end(), file.name) != leave->end();
      EXPECT_FALSE(leaves && file.in_use);
      if (!leaves) stays += file.bytes;
      if (leaves && file.name == leave->back()) last = file.bytes;
    }
    EXPECT_EQ(leave.ok(), in_use + need <= 200) << "seed " << seed;
    if (!leave.ok()) continue;
    EXPECT_LE(stays + need, 200u) << "seed " << seed;
    EXPECT_TRUE(leave->empty() || stays + last + need > 200) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hooke
