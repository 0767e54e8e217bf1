// The cache of a node: what is fetched and what is not, the copies that groups get, damaged and half-written entries,
// eviction, a restart, and several groups at once.

#include "worker/file_cache/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "wire/file_chunks.h"
#include "worker/file_cache/file_cache_fixture.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(FileCacheTest, AGroupGetsItsFolder) {
  const v1::FileSet set =
      source_.Add({{"a.py", "aa"}, {"b/c/d.py", "dd"}, {"b/same", "aa"}, {"empty/", ""}, {"run*", ""}});
  const absl::StatusOr<FileCache::Made> made = Make(set, "g1");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->fetched, 3u);
  EXPECT_EQ(made->contents, 3u);
  EXPECT_EQ(made->fetched_bytes, 4 + set.manifest_bytes());
  EXPECT_EQ(Text(Into("g1/a.py")) + Text(Into("g1/b/c/d.py")) + Text(Into("g1/b/same")), "aaddaa");
  EXPECT_TRUE(fs::is_directory(Into("g1/empty")));
  EXPECT_EQ(Mode(Into("g1/run")), 0700u);
  EXPECT_EQ(Mode(Into("g1/a.py")), 0600u);
}

// A second group fetches nothing, and a job with one changed file fetches that one.
TEST_F(FileCacheTest, OnlyWhatIsMissingIsFetched) {
  const v1::FileSet set = source_.Add({{"a", "11"}, {"b", "2"}});
  ASSERT_TRUE(Make(set, "g1").ok());
  source_.TakeFetched();
  EXPECT_EQ(Make(set, "g2")->fetched, 0u);
  EXPECT_EQ(source_.TakeFetched(), 0u);
  Open(1 << 20);  // The worker starts again.
  EXPECT_EQ(Make(set, "g3")->fetched, 0u);
  const v1::FileSet changed = source_.Add({{"a", "11"}, {"b", "333"}});
  const absl::StatusOr<FileCache::Made> made = Make(changed, "g4");
  EXPECT_EQ(made->fetched, 1u);
  EXPECT_EQ(made->contents, 2u);
  EXPECT_EQ(source_.TakeFetched(), 3 + changed.manifest_bytes());
}

// What a program writes into its folder changes no other group's files.
TEST_F(FileCacheTest, AGroupsFilesAreCopies) {
  const v1::FileSet set = source_.Add({{"a", "11"}});
  ASSERT_TRUE(Make(set, "g1").ok());
  std::ofstream(Into("g1/a")) << "changed";
  ASSERT_TRUE(Make(set, "g2").ok());
  EXPECT_EQ(Text(Into("g2/a")), "11");
}

TEST_F(FileCacheTest, DamagedEntriesAreFetchedAgain) {
  const v1::FileSet set = source_.Add({{"a", "11"}, {"b", "22"}, {"c", "33"}});
  ASSERT_TRUE(Make(set, "g1").ok());
  source_.TakeFetched();
  std::ofstream(CachedPath("11")) << "19";  // Damaged.
  std::ofstream(CachedPath("22")) << "2";   // Cut.
  fs::remove(CachedPath("33"));             // Gone.
  const absl::StatusOr<FileCache::Made> made = Make(set, "g2");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->fetched, 3u);
  EXPECT_EQ(source_.TakeFetched(), 6u);
  EXPECT_EQ(Text(Into("g2/a")) + Text(Into("g2/b")) + Text(Into("g2/c")), "112233");
  EXPECT_EQ(Text(CachedPath("11")), "11");
}

TEST_F(FileCacheTest, ADamagedManifestIsFetchedAgain) {
  const v1::FileSet set = source_.Add({{"a", "11"}});
  ASSERT_TRUE(Make(set, "g1").ok());
  source_.TakeFetched();
  std::ofstream(absl::StrCat(folder_, "/files/", absl::BytesToHexString(set.manifest_sha256()))) << "x";
  ASSERT_TRUE(Make(set, "g2").ok());
  EXPECT_EQ(source_.TakeFetched(), set.manifest_bytes());
}

// If a fetch breaks in the middle, the files that are whole stay in the cache, and the next group fetches only the
// rest.
TEST_F(FileCacheTest, ABrokenFetchGoesOn) {
  const std::string large(3 * kChunkBytesSent, 'x');
  const v1::FileSet set = source_.Add({{"a", "11"}, {"b", large}});
  int chunks = 0;
  const absl::Status status = cache_
                                  ->Make(
                                      set, Into("g1"),
                                      [&](const auto& sha256, const auto& take) {
                                        return source_.Fetch()(sha256, [&](const v1::FileChunk& chunk) {
                                          return ++chunks == 4 ? absl::UnavailableError("cut") : take(chunk);
                                        });
                                      },
                                      GoOn)
                                  .status();
  EXPECT_EQ(status, absl::UnavailableError("cut"));
  source_.TakeFetched();
  EXPECT_EQ(Make(set, "g2")->fetched, 1u);
  EXPECT_EQ(source_.TakeFetched(), large.size());
  EXPECT_EQ(Text(Into("g2/b")), large);
}

TEST_F(FileCacheTest, WhatNobodyAskedForIsRefused) {
  const v1::FileSet set = source_.Add({{"a", "11"}, {"b", "22"}});
  const auto make = [&](const FetchContents& fetch) { return cache_->Make(set, Into("g"), fetch, GoOn).status(); };
  EXPECT_THAT(std::string(make([](const auto&, const auto& take) { return SendContent("evil", take); }).message()),
              HasSubstr("another file than this worker asked for"));
  EXPECT_THAT(std::string(make([](const auto&, const auto&) { return absl::OkStatus(); }).message()),
              HasSubstr("fewer files"));
  const absl::Status damaged = make([&](const auto& sha256, const auto& take) {
    return source_.Fetch()(sha256, [&](v1::FileChunk chunk) {
      chunk.mutable_data()->back() ^= 1;
      return take(chunk);
    });
  });
  EXPECT_TRUE(absl::IsUnavailable(damaged)) << damaged;
  EXPECT_TRUE(Make(set, "g1").ok());
}

TEST_F(FileCacheTest, TheOldestLeaveAndThoseInUseStay) {
  const std::string a(1000, 'a');
  const std::string b(1000, 'b');
  const v1::FileSet one = source_.Add({{"a", a}});
  const v1::FileSet two = source_.Add({{"b", b}});
  Open(1500 + one.manifest_bytes() + two.manifest_bytes());
  {
    const absl::StatusOr<FileCache::Made> first = Make(one, "g1");
    ASSERT_TRUE(first.ok());
    const absl::Status full = Make(two, "g2").status();
    EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
    EXPECT_TRUE(fs::exists(CachedPath(a)));
  }
  ASSERT_TRUE(Make(two, "g3").ok());
  EXPECT_FALSE(fs::exists(CachedPath(a)));
  EXPECT_EQ(Text(Into("g3/b")), b);
  const v1::FileSet huge = source_.Add({{"c", std::string(9000, 'c')}});
  EXPECT_EQ(Make(huge, "g4").status().code(), absl::StatusCode::kFailedPrecondition);
  // One of these files is cached already. Together they are still too large for the cache.
  const v1::FileSet more = source_.Add({{"b", b}, {"c", std::string(1000, 'c')}});
  EXPECT_EQ(Make(more, "g5").status().code(), absl::StatusCode::kFailedPrecondition);
}

// Which file leaves depends on the order of their use alone, so nobody changes it by setting the machine's clock.
TEST_F(FileCacheTest, TheClockDoesNotSayWhichFileLeaves) {
  const std::string a(1000, 'a');
  const std::string b(1000, 'b');
  const v1::FileSet one = source_.Add({{"a", a}});
  const v1::FileSet two = source_.Add({{"b", b}});
  const v1::FileSet three = source_.Add({{"c", std::string(1000, 'c')}});
  Open(2500 + 3 * one.manifest_bytes());
  ASSERT_TRUE(Make(one, "g1").ok());
  ASSERT_TRUE(Make(two, "g2").ok());
  ASSERT_TRUE(Make(one, "g3").ok());
  // As if the clock had been set back before the last use.
  fs::last_write_time(CachedPath(a), fs::file_time_type::clock::now() - std::chrono::hours(5));
  ASSERT_TRUE(Make(three, "g4").ok());
  EXPECT_TRUE(fs::exists(CachedPath(a)));
  EXPECT_FALSE(fs::exists(CachedPath(b)));
}

// A group waits for its turn as long as files of the group before come, and that may take hours.
TEST_F(FileCacheTest, AGroupIsNotGivenUpWhileFilesOfTheOneBeforeCome) {
  std::atomic<int64_t> minutes{0};
  Open(64 << 20, [&] { return absl::UnixEpoch() + absl::Minutes(minutes.load()); });
  const v1::FileSet large = source_.Add({{"a", std::string(200 * kChunkBytesSent, 'x')}});
  const v1::FileSet small = source_.Add({{"b", "2"}});
  std::atomic<int> asked{0};
  const auto go_on = [&] {
    ++asked;
    return absl::OkStatus();
  };
  absl::Status waited;
  std::thread second;
  const FetchContents slow = [&](const auto& sha256, const auto& take) {
    if (!second.joinable()) {
      second = std::thread([&] { waited = cache_->Make(small, Into("g2"), source_.Fetch(), go_on).status(); });
      while (asked < 1) sched_yield();
    }
    return source_.Fetch()(sha256, [&](const v1::FileChunk& chunk) {
      ++minutes;
      return take(chunk);
    });
  };
  const absl::Status first = cache_->Make(large, Into("g1"), slow, GoOn).status();
  second.join();
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_GT(minutes, 200);
  EXPECT_TRUE(waited.ok()) << waited;
}

TEST_F(FileCacheTest, AStoppedGroupFetchesNoMore) {
  const v1::FileSet set = source_.Add({{"a", "11"}});
  EXPECT_TRUE(absl::IsCancelled(
      cache_->Make(set, Into("g"), source_.Fetch(), [] { return absl::CancelledError("stopped"); }).status()));
}

TEST_F(FileCacheTest, NoPathLeavesTheFolder) {
  for (const char* path : {"../evil", "/tmp/evil", "a/../../evil", ".."}) {
    v1::FileManifest manifest;
    manifest.add_entries()->set_path(path);
    bool copied = false;
    EXPECT_FALSE(MakeFiles(manifest, Into("g"), [&](const auto&, const auto&) {
                   copied = true;
                   return absl::OkStatus();
                 }).ok());
    EXPECT_FALSE(copied);
  }
}

// Groups of one job that start at once fetch each file once.
TEST_F(FileCacheTest, GroupsAtOnceFetchOnce) {
  const v1::FileSet set = source_.Add({{"a", "11"}, {"b", "22"}});
  std::vector<std::thread> groups;
  groups.reserve(8);
  for (int i = 0; i < 8; ++i) {
    groups.emplace_back([&, i] { EXPECT_TRUE(Make(set, absl::StrCat("g", i)).ok()); });
  }
  for (std::thread& group : groups) group.join();
  EXPECT_EQ(source_.TakeFetched(), 4 + set.manifest_bytes());
}

}  // namespace
}  // namespace hooke
