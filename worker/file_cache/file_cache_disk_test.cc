// The cache of a node on a disk that is full: a small file system of its own, which needs root or user namespaces.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "worker/file_cache/file_cache_fixture.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Gives this process mounts of its own. Returns "" or why that is impossible. Called while it has one thread.
std::string OwnMounts() {
  const uid_t user = geteuid();
  if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return strerror(errno);
  if (user != 0) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? "" : strerror(errno);
}

class FileCacheDiskTest : public FileCacheTest {
 protected:
  static void SetUpTestSuite() { why_not_ = new std::string(OwnMounts()); }
  static void TearDownTestSuite() { delete why_not_; }

  void TearDown() override {
    cache_.reset();
    if (mounted_) umount2(Disk().c_str(), MNT_DETACH);
  }

  // Opens a cache on a disk of this size, like "size=1m". Returns false if this machine allows no mount.
  bool OpenOnDisk(const std::string& size) {
    if (!why_not_->empty()) return false;
    cache_.reset();
    fs::remove_all(Disk());
    fs::create_directories(Disk());
    mounted_ = mount("tmpfs", Disk().c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (!mounted_) *why_not_ = strerror(errno);
    if (mounted_) Open(uint64_t{1} << 30);
    return mounted_;
  }
  std::string Disk() const { return folder_ + "/files"; }

  static std::string* why_not_;
  bool mounted_ = false;
};

std::string* FileCacheDiskTest::why_not_ = nullptr;

// Other files have filled the disk, or it is smaller than --files-cache-bytes. New files then take the room of old ones
// in the cache.
TEST_F(FileCacheDiskTest, AFullDiskTakesNewFilesInPlaceOfOldOnes) {
  if (!OpenOnDisk("size=1m")) GTEST_SKIP() << "no mount: " << *why_not_;
  const std::string old(300 << 10, 'o');
  const std::string mid(300 << 10, 'm');
  const std::string large(600 << 10, 'l');
  ASSERT_TRUE(Make(source_.Add({{"old", old}}), "g1").ok());
  ASSERT_TRUE(Make(source_.Add({{"mid", mid}}), "g2").ok());
  const absl::StatusOr<FileCache::Made> made = Make(source_.Add({{"a", "first"}, {"large", large}}), "g3");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->fetched, 2u);
  EXPECT_EQ(Text(Into("g3/a")) + Text(Into("g3/large")), "first" + large);
  // The least recently used ones have left.
  EXPECT_FALSE(fs::exists(CachedPath(old)));
  EXPECT_FALSE(fs::exists(CachedPath(mid)));
}

// The group's folder is on the cache's disk, as in a worker's --state-dir. What is fetched fits, but not its copy.
TEST_F(FileCacheDiskTest, AFullDiskTakesTheCopiesOfAGroup) {
  if (!OpenOnDisk("size=1m")) GTEST_SKIP() << "no mount: " << *why_not_;
  const std::string old(400 << 10, 'o');
  const std::string now(400 << 10, 'n');
  ASSERT_TRUE(Make(source_.Add({{"old", old}}), "g1").ok());
  ASSERT_TRUE(Make(source_.Add({{"a", "first"}, {"now", now}}), "files/group").ok());
  EXPECT_EQ(Text(Disk() + "/group/a") + Text(Disk() + "/group/now"), "first" + now);
  EXPECT_FALSE(fs::exists(CachedPath(old)));
}

// The files of running groups stay, so that new files find no room. The error says on which disk, how much room is
// needed, and what to do.
TEST_F(FileCacheDiskTest, AFullDiskKeepsFilesInUseAndSaysWhatToDo) {
  if (!OpenOnDisk("size=1m")) GTEST_SKIP() << "no mount: " << *why_not_;
  const std::string used(600 << 10, 'u');
  const v1::FileSet large = source_.Add({{"large", std::string(600 << 10, 'l')}});
  absl::StatusOr<FileCache::Made> first = Make(source_.Add({{"used", used}}), "g1");
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status full = Make(large, "g2").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("the disk is full: 600.0 KiB more are needed"), HasSubstr(Disk()),
                    HasSubstr("make room on that disk, or start hooke-worker with a --state-dir on a larger one"),
                    HasSubstr("No space left on device")));
  EXPECT_EQ(Text(CachedPath(used)), used);
  first->use.reset();
  EXPECT_TRUE(Make(large, "g3").ok());
}

// Many small files use up the disk's inodes, not its bytes. Old files in the cache are removed for new ones.
TEST_F(FileCacheDiskTest, ADiskWithoutRoomForNamesTakesNewFiles) {
  if (!OpenOnDisk("size=1m,nr_inodes=24")) GTEST_SKIP() << "no mount: " << *why_not_;
  for (const char* job : {"a", "b", "c"}) {
    std::map<std::string, std::string> files;
    for (int i = 0; i < 12; ++i) files[absl::StrCat("f", i)] = absl::StrCat(job, i);
    const absl::Status status = Make(source_.Add(files), job).status();
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace hooke
