// The cache of a node: what is fetched and what is not, the copies that groups get, damaged and half-written entries,
// eviction, a restart, and several groups at once.

#include "worker/file_cache/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "wire/file_chunks.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

absl::Status GoOn() { return absl::OkStatus(); }

// A coordinator that has the files of all jobs of a test.
class Source {
 public:
  // Adds a job with these files: path to content. A path that ends in "*" is executable, one in "/" is a folder.
  v1::FileSet Add(const std::map<std::string, std::string>& files) {
    v1::FileManifest manifest;
    for (const auto& [path, bytes] : files) {
      v1::FileEntry& entry = *manifest.add_entries();
      entry.set_path(path.substr(0, path.find_first_of("*/", path.size() - 1)));
      entry.set_executable(path.back() == '*');
      entry.set_folder(path.back() == '/');
      if (entry.folder()) continue;
      entry.set_sha256(Sha256Of(bytes));
      entry.set_bytes(bytes.size());
      contents_[entry.sha256()] = bytes;
    }
    v1::FileSet set = FileSetOf(manifest);
    contents_[set.manifest_sha256()] = ManifestBytes(manifest);
    return set;
  }

  FetchContents Fetch() {
    return
        [this](const std::vector<std::string>& sha256, const std::function<absl::Status(const v1::FileChunk&)>& take) {
          for (const std::string& digest : sha256) {
            absl::MutexLock lock(&mutex_);
            fetched_ += contents_.at(digest).size();
            if (absl::Status status = SendContent(contents_.at(digest), take); !status.ok()) return status;
          }
          return absl::OkStatus();
        };
  }

  // Bytes fetched since the last call.
  uint64_t TakeFetched() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(fetched_, 0);
  }

 private:
  std::map<std::string, std::string> contents_;
  absl::Mutex mutex_;
  uint64_t fetched_ = 0;
};

class FileCacheTest : public ::testing::Test {
 protected:
  FileCacheTest() : folder_(absl::StrCat(testing::TempDir(), "/cache-", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Open(1 << 20);
  }
  ~FileCacheTest() override {
    cache_.reset();
    fs::remove_all(folder_);
  }

  void Open(uint64_t bytes_max) {
    cache_.reset();
    absl::StatusOr<std::unique_ptr<FileCache>> cache = FileCache::Open(folder_ + "/files", bytes_max);
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  absl::StatusOr<FileCache::Made> Make(const v1::FileSet& set, const std::string& name) {
    return cache_->Make(set, Into(name), source_.Fetch(), GoOn);
  }
  std::string Into(const std::string& name) const { return folder_ + "/" + name; }
  std::string CachedPath(const std::string& bytes) const {
    return absl::StrCat(folder_, "/files/", absl::BytesToHexString(Sha256Of(bytes)));
  }
  static std::string Text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static mode_t Mode(const std::string& path) {
    struct stat info = {};
    stat(path.c_str(), &info);
    return info.st_mode & 0777;
  }

  const std::string folder_;
  Source source_;
  std::unique_ptr<FileCache> cache_;
};

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
