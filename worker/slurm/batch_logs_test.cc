// The logs of batch jobs, and texts of any bytes.

#include "worker/slurm/batch_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

// No cut leaves a part of a character, and no byte is left that is not UTF-8.
TEST(BatchLogsTest, TextsAreCutAtWholeCharacters) {
  const std::string text = "a\u00e4\u20ac";  // Characters of 1, 2 and 3 bytes.
  const char* starts[] = {"", "a", "a", "a\u00e4", "a\u00e4", "a\u00e4", "a\u00e4\u20ac", "a\u00e4\u20ac"};
  const char* ends[] = {"", "", "", "\u20ac", "\u20ac", "\u00e4\u20ac", "a\u00e4\u20ac", "a\u00e4\u20ac"};
  for (size_t bytes = 0; bytes < std::size(starts); ++bytes) {
    EXPECT_EQ(EscapedStart(text, bytes), starts[bytes]) << bytes;
    EXPECT_EQ(EscapedEnd(text, bytes), ends[bytes]) << bytes;
  }
  EXPECT_EQ(EscapedStart("\xe4\xe4", 9), "\\xe4\\xe4");
  EXPECT_EQ(EscapedEnd("\xe4\x1b[m", 9), "\\xe4\\x1b[m");
  EXPECT_EQ(EscapedStart(std::string(9, '\x80'), 5), "\\x80\\x80") << "no UTF-8 at all";
}

class BatchLogsFolderTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  const std::string folder_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(BatchLogsFolderTest, TheLastLineOfALog) {
  EXPECT_EQ(LastLine(folder_ + "/none"), "");
  EXPECT_EQ(LastLine(Write("a", "")), "");
  EXPECT_EQ(LastLine(Write("a", "one\ntwo\n\n")), "two");
  EXPECT_EQ(LastLine(Write("a", "one\ntwo")), "two");
  EXPECT_EQ(LastLine(Write("a", "s: one\ns: two\nthree\n"), "s: "), "s: two");
  EXPECT_EQ(LastLine(Write("a", "one\n"), "s: "), "");
  EXPECT_EQ(LastLine(Write("a", "one\n" + std::string(1 << 20, '\n'))), "") << "only the end is read";
  EXPECT_EQ(LastLine(Write("a", std::string(1 << 20, 'x') + "\nlast\n")), "last");
}

// The newest logs stay, with those of batch jobs that Slurm still has. Other files are left alone.
TEST_F(BatchLogsFolderTest, OldLogsGo) {
  const fs::file_time_type now = fs::file_time_type::clock::now();
  for (int id = 1; id <= 6; ++id) {
    fs::last_write_time(Write(absl::StrCat("slurm-", id, ".log"), "x"), now - std::chrono::hours(id));
  }
  for (const char* other : {"slurm-7.txt", "slurm-x.log", "slurm-.log", "hooke-8.log"}) Write(other, "x");
  const auto in_use = [](const std::string& id) { return id == "5"; };
  KeepNewestLogs(folder_, 3, in_use);
  const std::set<std::string> left = {"slurm-1.log", "slurm-2.log", "slurm-5.log", "slurm-7.txt",
                                      "slurm-x.log", "slurm-.log",  "hooke-8.log"};
  EXPECT_EQ(Names(), left);
  KeepNewestLogs(folder_, 3, in_use);
  EXPECT_EQ(Names(), left);
  KeepNewestLogs(folder_ + "/none", 3, in_use);
}

}  // namespace
}  // namespace hooke
