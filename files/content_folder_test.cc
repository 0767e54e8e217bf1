// A file of a ContentFolder is there complete, or not at all: after a fault in mid-write, and after a killed process.

#include "files/content_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

class ContentFolderTest : public ::testing::Test {
 protected:
  ContentFolderTest() : path_(absl::StrCat(testing::TempDir(), "/contents-", getpid())) { fs::remove_all(path_); }
  ~ContentFolderTest() override { fs::remove_all(path_); }

  std::unique_ptr<ContentFolder> Open() {
    absl::StatusOr<std::unique_ptr<ContentFolder>> folder = ContentFolder::Open(path_);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *std::move(folder);
  }
  size_t FilesThere() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }
  std::string Text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }
  static void Put(const ContentFolder& folder, const std::string& name, const std::string& bytes) {
    absl::StatusOr<std::unique_ptr<NewContent>> content = folder.Begin();
    ASSERT_TRUE(content.ok()) << content.status();
    ASSERT_TRUE((*content)->Append(bytes).ok());
    ASSERT_TRUE((*content)->Publish(name, Durable::kYes).ok());
  }

  const std::string path_;
};

TEST_F(ContentFolderTest, PublishedFilesStayOverARestart) {
  Put(*Open(), "a", "first");
  const std::unique_ptr<ContentFolder> folder = Open();
  Put(*folder, "b", "");
  EXPECT_EQ(Text("a"), "first");
  absl::StatusOr<std::vector<ContentFolder::Entry>> entries = folder->List();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  for (const ContentFolder::Entry& entry : *entries) EXPECT_EQ(entry.bytes, entry.name == "a" ? 5u : 0u);
  folder->Remove("a");
  EXPECT_EQ(folder->List()->size(), 1u);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
}

TEST_F(ContentFolderTest, AFileThatIsNotPublishedLeavesNothing) {
  const std::unique_ptr<ContentFolder> folder = Open();
  {
    absl::StatusOr<std::unique_ptr<NewContent>> content = folder->Begin();
    ASSERT_TRUE(content.ok());
    ASSERT_TRUE((*content)->Append("half").ok());
    EXPECT_TRUE(folder->List()->empty());
    EXPECT_EQ(FilesThere(), 1u);
  }
  EXPECT_EQ(FilesThere(), 0u);
}

// A process that was killed in mid-write leaves its file, which the next Open removes.
TEST_F(ContentFolderTest, OpenRemovesWhatAKilledProcessLeft) {
  Put(*Open(), "a", "first");
  std::ofstream(path_ + "/new-123456") << "half";
  const std::unique_ptr<ContentFolder> folder = Open();
  EXPECT_EQ(FilesThere(), 1u);
  EXPECT_EQ(Text("a"), "first");
}

// The disk takes the first bytes of a file and refuses the rest: the write fails, and nothing stays.
TEST_F(ContentFolderTest, AFaultInMidWriteLeavesNothing) {
  const std::unique_ptr<ContentFolder> folder = Open();
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit = {1000, before.rlim_max};
  {
    absl::StatusOr<std::unique_ptr<NewContent>> content = folder->Begin();
    ASSERT_TRUE(content.ok());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_TRUE((*content)->Append(std::string(900, 'x')).ok());
    const absl::Status status = (*content)->Append(std::string(900, 'x'));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
  EXPECT_EQ(FilesThere(), 0u);
}

TEST_F(ContentFolderTest, UseSetsTheTime) {
  const std::unique_ptr<ContentFolder> folder = Open();
  Put(*folder, "a", "x");
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, folder->PathOf("a").c_str(), old, 0), 0);
  EXPECT_EQ(folder->List()->at(0).used, absl::FromUnixSeconds(1000));
  folder->Use("a");
  EXPECT_LT(absl::Now() - folder->List()->at(0).used, absl::Minutes(1));
  folder->Use("missing");
}

}  // namespace
}  // namespace hooke
