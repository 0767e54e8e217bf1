#include "files/whole_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// A file is replaced as a whole, and no other file is left beside it. If it cannot be written, the error names it.
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

}  // namespace
}  // namespace hooke
