#include "client/export/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() { std::filesystem::create_directories(folder_); }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }

  std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  size_t FilesInFolder() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/safetensors_test");
  const std::string path_ = absl::StrCat(folder_, "/model.safetensors");
};

// The file has all bytes that were appended. It appears when it is complete.
TEST_F(SafetensorsTest, AppearsComplete) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, 7);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append("head").ok());
  ASSERT_TRUE(file->Append("end").ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file->Finish(/*replace=*/false).ok());
  EXPECT_EQ(file->bytes(), 7u);
  EXPECT_EQ(Read(path_), "headend");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// An existing file is replaced only on request. An unfinished file is removed.
TEST_F(SafetensorsTest, ReplacesOnlyWhenAsked) {
  std::ofstream(path_) << "old";
  {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, 4);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Finish(/*replace=*/false),
              absl::AlreadyExistsError(
                  absl::StrCat(path_, ": the file exists already; choose another name, or --force to replace it")));
  }
  EXPECT_EQ(Read(path_), "old");
  { ASSERT_TRUE(SafetensorsFile::Create(path_, 4).ok()); }
  EXPECT_EQ(FilesInFolder(), 1u);
  {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, 4);
    EXPECT_TRUE(file->Finish(/*replace=*/true).ok());
  }
  EXPECT_NE(Read(path_), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// A model that is too large for any disk is refused before anything is written. No file is left.
TEST_F(SafetensorsTest, ADiskWithoutRoom) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, uint64_t{1} << 54);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("model.safetensors: cannot hold 18014398509481984 bytes"));
  EXPECT_EQ(FilesInFolder(), 0u);
  const absl::Status folder = SafetensorsFile::Create(folder_ + "/none/model", 4).status();
  EXPECT_EQ(
      folder,
      absl::FailedPreconditionError(absl::StrCat(
          folder_, "/none/model: cannot be made: No such file or directory; choose a file elsewhere, or make room")));
}

}  // namespace
}  // namespace hooke
