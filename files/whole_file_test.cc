#include "files/whole_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// A file is replaced as a whole, and no other file is left beside it. If the file cannot be written, the error names
// it.
TEST(WholeFileTest, IsThereWholeOrNotAtAll) {
  const std::string folder = testing::TempDir() + "/whole_file";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/file";
  for (const std::string& text : {std::string("a longer text\n"), std::string("b\0c", 3), std::string()}) {
    ASSERT_TRUE(WriteWholeFile(path, text).ok());
    std::ifstream file(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_EQ(WriteWholeFile(folder + "/none/file", "x"),
            absl::InternalError(absl::StrCat("cannot write ", folder, "/none/file: No such file or directory")));
  std::filesystem::remove_all(folder);
}

// OverwriteFile leaves the bytes that follow a shorter text, and makes no new file. If the disk is full, the error says
// so.
TEST(WholeFileTest, OverwritesTheStart) {
  const std::string path = testing::TempDir() + "/overwritten";
  std::filesystem::remove(path);
  EXPECT_EQ(OverwriteFile(path, "x").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(WriteWholeFile(path, "a longer text").ok());
  ASSERT_TRUE(OverwriteFile(path, "A").ok());
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "A longer text");
  EXPECT_EQ(OverwriteFile("/dev/full", "x").code(), absl::StatusCode::kResourceExhausted);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hooke
