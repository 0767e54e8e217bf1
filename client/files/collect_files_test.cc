// Tests which files a job sends: folders, links, empty folders and modes. Also tests which paths are refused, and with
// which words.

#include "client/files/collect_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/file_manifest.h"
#include "wire/sha256.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CollectFilesTest : public ::testing::Test {
 protected:
  CollectFilesTest() : folder_(absl::StrCat(testing::TempDir(), "/collect-", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/src/deep");
    fs::create_directories(folder_ + "/empty");
    Write("train.py", "import src.a");
    Write("src/a.py", "a");
    Write("src/deep/b.py", "b");
    Write("src/same.py", "a");
    Write("run.sh", "#!/bin/sh");
    fs::permissions(folder_ + "/run.sh", fs::perms::owner_all);
  }
  ~CollectFilesTest() override { fs::remove_all(folder_); }

  void Write(const std::string& path, const std::string& text) const { std::ofstream(folder_ + "/" + path) << text; }

  // Returns the paths, with "*" after an executable file and "/" after an empty folder; or the error.
  std::string Collected(const std::vector<std::string>& paths) const {
    const absl::StatusOr<CollectedFiles> files = CollectFiles(folder_, paths);
    if (!files.ok()) return std::string(files.status().message());
    const absl::StatusOr<v1::FileManifest> manifest = ReadManifest(files->set, files->manifest);
    if (!manifest.ok()) return absl::StrCat("MANIFEST ", manifest.status().message());
    return absl::StrJoin(manifest->entries(), " ", [](std::string* text, const v1::FileEntry& entry) {
      absl::StrAppend(text, entry.path(), entry.executable() ? "*" : "", entry.folder() ? "/" : "");
    });
  }

  const std::string folder_;
};

TEST_F(CollectFilesTest, FoldersGiveAllTheyHold) {
  EXPECT_EQ(Collected({"train.py"}), "train.py");
  EXPECT_EQ(Collected({"src", "run.sh"}), "run.sh* src/a.py src/deep/b.py src/same.py");
  EXPECT_EQ(Collected({"src", "src/a.py", "src"}), "src/a.py src/deep/b.py src/same.py");
  EXPECT_EQ(Collected({"."}), "empty/ run.sh* src/a.py src/deep/b.py src/same.py train.py");
}

TEST_F(CollectFilesTest, EachContentIsThereOnce) {
  const absl::StatusOr<CollectedFiles> files = CollectFiles(folder_, {"src"});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->contents.size(), 2u);
  EXPECT_EQ(files->contents[0].content.sha256(), Sha256Of("a"));
  EXPECT_EQ(files->contents[0].path, folder_ + "/src/a.py");
  EXPECT_EQ(FilesText(files->set), "3 files, 3 bytes");
}

// The same files give the same manifest, whatever the order in which they are named.
TEST_F(CollectFilesTest, TheManifestDependsOnTheFilesOnly) {
  EXPECT_EQ(CollectFiles(folder_, {"src", "train.py"})->manifest, CollectFiles(folder_, {"train.py", "src"})->manifest);
  const std::string before = CollectFiles(folder_, {"src"})->set.manifest_sha256();
  Write("src/a.py", "c");
  EXPECT_NE(CollectFiles(folder_, {"src"})->set.manifest_sha256(), before);
}

TEST_F(CollectFilesTest, LinksCountAsTheirFiles) {
  fs::create_symlink("../train.py", folder_ + "/src/link.py");
  EXPECT_EQ(Collected({"src"}), "src/a.py src/deep/b.py src/link.py src/same.py");
  fs::create_symlink("src", folder_ + "/code");
  EXPECT_EQ(Collected({"code"}), "code/a.py code/deep/b.py code/link.py code/same.py");
  fs::create_symlink("..", folder_ + "/src/circle");
  EXPECT_THAT(Collected({"src"}), HasSubstr("\"src/circle\" is a link to a folder inside a folder"));
  fs::create_symlink("nowhere", folder_ + "/broken");
  EXPECT_THAT(Collected({"broken"}), HasSubstr("\"broken\" is a link that leads to no file"));
}

TEST_F(CollectFilesTest, WhatIsNoFileIsNamed) {
  EXPECT_THAT(Collected({"missing.py"}), HasSubstr("\"missing.py\" is not there in " + folder_));
  EXPECT_THAT(Collected({"*.py"}), HasSubstr("patterns are not expanded"));
  ASSERT_EQ(mkfifo((folder_ + "/src/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Collected({"src"}), HasSubstr("\"src/pipe\" is no plain file"));
  fs::remove(folder_ + "/src/pipe");
  Write("src/bad\nname", "x");
  EXPECT_THAT(Collected({"src"}), HasSubstr("is not UTF-8 without control characters"));
}

TEST_F(CollectFilesTest, AnUnreadableFileIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  fs::permissions(folder_ + "/src/a.py", fs::perms::none);
  EXPECT_THAT(Collected({"src"}), HasSubstr("\"src/a.py\" is not sent: it cannot be opened: Permission denied"));
}

// A file of /proc says that it has 0 bytes, and has more: it is like a file that grows while it is read.
TEST_F(CollectFilesTest, AFileThatChangesWhileItIsReadIsNamed) {
  fs::create_symlink("/proc/self/status", folder_ + "/grows");
  EXPECT_THAT(Collected({"grows"}), HasSubstr("\"grows\" changes while it is read"));
}

TEST_F(CollectFilesTest, TooManyFilesAreRefused) {
  fs::create_directories(folder_ + "/many");
  for (int i = 0; i <= 10000; ++i) Write(absl::StrCat("many/", i), "");
  EXPECT_THAT(Collected({"many"}), HasSubstr("these are more than 10000 files"));
  fs::remove(folder_ + "/many/7");
  EXPECT_TRUE(CollectFiles(folder_, {"many"}).ok());
}

}  // namespace
}  // namespace hooke
