#include "files/new_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() { std::filesystem::create_directories(folder_); }
  ~NewFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  ptrdiff_t Files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/new_file_test");
  const std::string path_ = folder_ + "/file";
};

// A file is written if there is none, and replaced only on request. No other file is left in the folder.
TEST_F(NewFileTest, ReplacesOnlyWhenAsked) {
  EXPECT_TRUE(CheckNewFile(path_, false).ok());
  EXPECT_TRUE(WriteNewFile(path_, "one", false).ok());
  for (const absl::Status& status : {CheckNewFile(path_, false), WriteNewFile(path_, "two", false)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ": the file exists already; choose another name"));
  }
  EXPECT_EQ(Read(), "one");
  EXPECT_TRUE(WriteNewFile(path_, "three", true).ok());
  EXPECT_EQ(Read(), "three");
  EXPECT_EQ(Files(), 1);
}

// If a file cannot be written, the error gives its path and the reason.
TEST_F(NewFileTest, SaysWhyNot) {
  EXPECT_EQ(WriteNewFile(folder_, "x", true).message(), folder_ + ": is a folder; name a file");
  // Even with `replace`, a device is never replaced by a file.
  EXPECT_EQ(WriteNewFile("/dev/full", "x", true).message(),
            "/dev/full: is no plain file, but a device, pipe or socket; name a file");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  const absl::Status status = WriteNewFile(folder_ + "/none/file", "x", false);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/none/file: cannot be written: No such file or directory"));
  EXPECT_EQ(Files(), 0);
}

}  // namespace
}  // namespace hooke
