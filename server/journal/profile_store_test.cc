#include "server/journal/profile_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class ProfileStoreTest : public testing::Test {
 protected:
  ProfileStoreTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  ~ProfileStoreTest() override { std::filesystem::remove_all(folder_); }

  // Returns a profile of about `bytes` bytes.
  static std::string Profile(size_t bytes) {
    v1::RankProfile profile;
    profile.set_machine(std::string(bytes, 'm'));
    return profile.SerializeAsString();
  }
  static std::string Names(const std::vector<ProfileKey>& keys) {
    std::string names;
    for (const ProfileKey& key : keys) absl::StrAppend(&names, key.group, "-", key.rank, " ");
    return names;
  }

  const std::string folder_;
};

// The store lists and returns the last profile of each rank, also after a restart. The list is ordered by group and
// rank.
TEST_F(ProfileStoreTest, KeepsTheLastOfEachRank) {
  {
    ProfileStore store = *ProfileStore::Open({folder_});
    EXPECT_TRUE(store.List("a-1").empty());
    EXPECT_EQ(store.Read({"a-1", 0, 0}).status().code(), absl::StatusCode::kNotFound);
    for (uint32_t group : {10, 2}) {
      for (size_t bytes : {5, 7}) EXPECT_TRUE(store.Put({"a-1", group, 1}, Profile(bytes)).ok());
    }
  }
  const ProfileStore store = *ProfileStore::Open({folder_});
  EXPECT_EQ(Names(store.List("a-1")), "2-1 10-1 ");
  EXPECT_EQ(store.Read({"a-1", 10, 1})->machine().size(), 7u);
}

// A profile beyond its job's bound is refused, and the others stay. At the bound of all jobs the oldest jobs lose their
// profiles, whenever these were written, but never the job that is written to.
TEST_F(ProfileStoreTest, IsBounded) {
  ProfileStoreOptions options;
  options.folder = folder_;
  options.job_bytes_max = 2500;
  options.all_bytes_max = 4000;
  {
    ProfileStore store = *ProfileStore::Open(options);
    for (uint32_t rank : {0, 1}) EXPECT_TRUE(store.Put({"a-9", 0, rank}, Profile(1000)).ok());
    const absl::Status refused = store.Put({"a-9", 0, 2}, Profile(1000));
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("that of group 0 rank 2 is not kept"));
    EXPECT_TRUE(store.Put({"a-9", 0, 1}, Profile(1001)).ok());
    EXPECT_TRUE(store.Put({"b-8", 0, 0}, Profile(1000)).ok());
  }
  ProfileStore store = *ProfileStore::Open(options);
  for (uint32_t rank : {0, 1}) EXPECT_TRUE(store.Put({"c-10", 0, rank}, Profile(1000)).ok());
  EXPECT_EQ(Names(store.List("b-8")), "");
  EXPECT_EQ(Names(store.List("a-9")), "");  // Two jobs of a little over 2000 bytes each exceed 4000.
  EXPECT_EQ(Names(store.List("c-10")), "0-0 0-1 ");
  EXPECT_TRUE(store.Put({"b-8", 0, 0}, Profile(1000)).ok());
  EXPECT_EQ(Names(store.List("b-8")), "0-0 ");
}

// Files that are not ours are not taken for profiles, and a damaged one is an error that names it.
TEST_F(ProfileStoreTest, StrangeFiles) {
  ProfileStore store = *ProfileStore::Open({folder_});
  ASSERT_TRUE(store.Put({"a-1", 0, 0}, Profile(10)).ok());
  for (const char* name : {"x", "1", "0-1-2", "0--1", "00-1", "0-3.part"})
    std::ofstream(folder_ + "/a-1/" + name) << "?";
  EXPECT_EQ(Names(store.List("a-1")), "0-0 ");
  std::ofstream(folder_ + "/a-1/0-0") << "\xff\xff";
  const absl::Status damaged = store.Read({"a-1", 0, 0}).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("/a-1/0-0"));
  EXPECT_TRUE(ProfileStore::Open({folder_}).ok());
}

// A folder that cannot be made or written is an error that names it.
TEST_F(ProfileStoreTest, DiskTrouble) {
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(std::string(ProfileStore::Open({folder_}).status().message()), HasSubstr(folder_));
  std::filesystem::remove(folder_);
  ProfileStore store = *ProfileStore::Open({folder_});
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(std::string(store.Put({"a-1", 0, 0}, Profile(10)).message()), HasSubstr("cannot write " + folder_));
}

}  // namespace
}  // namespace hooke
