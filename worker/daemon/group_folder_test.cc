#include "worker/daemon/group_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class GroupFolderTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(path_); }

  const std::string path_ = ::testing::TempDir() + "/state " + std::to_string(getpid());
};

// Only their owner can read a group's folders. The socket's path is short enough. At the end both folders are gone.
TEST_F(GroupFolderTest, MadeAndRemoved) {
  auto state = WorkerFolder::Open(path_);
  ASSERT_TRUE(state.ok()) << state.status();
  auto group = GroupFolder::Make((*state)->groups(), "fashion-1-0-1");
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_TRUE((*group)->WriteStartFile("abc").ok());
  EXPECT_EQ(fs::file_size((*group)->start_file()), 3u);
  EXPECT_TRUE(CheckSocketPath((*group)->socket()).ok());
  for (const std::string& path : {(*group)->path(), (*group)->memory_path()}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << path;
  }
  const std::string memory = (*group)->memory_path();
  group->reset();
  EXPECT_TRUE(fs::is_empty((*state)->groups()));
  EXPECT_FALSE(fs::exists(memory));
}

// Two daemons cannot share a state folder.
TEST_F(GroupFolderTest, Locked) {
  auto state = WorkerFolder::Open(path_);
  ASSERT_TRUE(state.ok()) << state.status();
  const auto second = WorkerFolder::Open(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("is in use by another hooke-worker: choose another --state-dir"));
  state->reset();
  EXPECT_TRUE(WorkerFolder::Open(path_).ok());
}

// The next daemon to open a state folder removes the group folders of a killed one, and their shared memory. A link to
// anything else is not followed.
TEST_F(GroupFolderTest, LeftoversAreRemoved) {
  std::string memory = "/tmp/hooke-XXXXXX";
  ASSERT_NE(mkdtemp(memory.data()), nullptr);
  const std::string foreign = path_ + "/foreign";
  for (const std::string& folder : {path_ + "/groups/a", path_ + "/groups/b", foreign}) fs::create_directories(folder);
  fs::create_symlink(memory, path_ + "/groups/a/memory");
  fs::create_symlink(foreign, path_ + "/groups/b/memory");
  const auto state = WorkerFolder::Open(path_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(fs::is_empty((*state)->groups()));
  EXPECT_FALSE(fs::exists(memory));
  EXPECT_TRUE(fs::exists(foreign));
}

// If a state folder cannot be made, the error names it.
TEST_F(GroupFolderTest, CannotBeMade) {
  fs::create_directories(path_);
  std::ofstream(path_ + "/file") << "x";
  const auto state = WorkerFolder::Open(path_ + "/file/x");
  EXPECT_EQ(state.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(state.status().message()), HasSubstr(path_ + "/file/x"));
}

// A path of 107 bytes is accepted for a socket, a longer one is not.
TEST(CheckSocketPathTest, Length) {
  EXPECT_TRUE(CheckSocketPath(std::string(107, 'a')).ok());
  EXPECT_EQ(CheckSocketPath(std::string(108, 'a')).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
