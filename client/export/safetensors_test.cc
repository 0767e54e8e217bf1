#include "client/export/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
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

// The smallest file equals the example of safetensors.h, byte by byte.
TEST_F(SafetensorsTest, TheSmallestFile) {
  absl::StatusOr<std::string> header = SafetensorsHeader({{"s", {}}}, {});
  ASSERT_TRUE(header.ok()) << header.status();
  std::string expected = R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(*header, absl::StrCat(std::string("\x38\0\0\0\0\0\0\0", 8), expected));
}

// A reader that does not share our code finds the names, shapes, offsets and values. It does not matter in which order
// the values were written.
TEST_F(SafetensorsTest, ReadsBack) {
  const std::vector<TensorShape> tensors = {{"conv1.weight", {2, 1, 3}}, {"bias \"q\"", {2}}, {"scale", {}}};
  ASSERT_EQ(CountValues(tensors), 9u);
  std::vector<float> values(9);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.5f * static_cast<float>(i) - 2;
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), 36);
  {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, tensors, {{"hooke_job", "fashion-1"}});
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write(4, bytes.substr(16)).ok());
    ASSERT_TRUE(file->Write(0, bytes.substr(0, 16)).ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_TRUE(file->Finish(/*replace=*/false).ok());
    EXPECT_EQ(file->bytes(), std::filesystem::file_size(path_));
  }
  const std::string content = Read(path_);
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(content[static_cast<size_t>(i)]);
  EXPECT_EQ(header_bytes % 8, 0u);
  const nlohmann::json header = nlohmann::json::parse(content.substr(8, header_bytes));
  EXPECT_EQ(header["__metadata__"]["hooke_job"], "fashion-1");
  const nlohmann::json& bias = header["bias \"q\""];
  EXPECT_EQ(bias["dtype"], "F32");
  EXPECT_EQ(bias["shape"], nlohmann::json({2}));
  EXPECT_EQ(bias["data_offsets"], nlohmann::json({24, 32}));
  EXPECT_EQ(header["conv1.weight"]["shape"], nlohmann::json({2, 1, 3}));
  EXPECT_EQ(content.substr(8 + header_bytes), bytes);
  EXPECT_EQ(FilesInFolder(), 1u);
}

// An existing file is replaced only on request. An unfinished file is removed.
TEST_F(SafetensorsTest, ReplacesOnlyWhenAsked) {
  std::ofstream(path_) << "old";
  {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, {{"s", {}}}, {});
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Finish(/*replace=*/false),
              absl::AlreadyExistsError(
                  absl::StrCat(path_, ": the file exists already; choose another name, or --force to replace it")));
  }
  EXPECT_EQ(Read(path_), "old");
  { ASSERT_TRUE(SafetensorsFile::Create(path_, {{"s", {}}}, {}).ok()); }
  EXPECT_EQ(FilesInFolder(), 1u);
  {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, {{"s", {}}}, {});
    EXPECT_TRUE(file->Finish(/*replace=*/true).ok());
  }
  EXPECT_NE(Read(path_), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// A model that is too large for any disk is refused before anything is written. No file is left.
TEST_F(SafetensorsTest, ADiskWithoutRoom) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(path_, {{"s", {uint64_t{1} << 52}}}, {});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("model.safetensors: cannot hold 18014398509482"));
  EXPECT_EQ(FilesInFolder(), 0u);
  const absl::Status folder = SafetensorsFile::Create(folder_ + "/none/model", {{"s", {}}}, {}).status();
  EXPECT_EQ(
      folder,
      absl::FailedPreconditionError(absl::StrCat(
          folder_, "/none/model: cannot be made: No such file or directory; choose a file elsewhere, or make room")));
}

// Layouts that a file cannot hold are refused.
TEST_F(SafetensorsTest, LayoutsThatCannotBe) {
  const uint64_t huge = uint64_t{1} << 40;
  EXPECT_FALSE(SafetensorsHeader({{"", {1}}}, {}).ok());
  EXPECT_FALSE(SafetensorsHeader({{"__metadata__", {1}}}, {}).ok());
  EXPECT_FALSE(SafetensorsHeader({{"a", {1}}, {"a", {1}}}, {}).ok());
  EXPECT_FALSE(SafetensorsHeader({{"a", {huge, huge}}}, {}).ok());
  EXPECT_FALSE(SafetensorsHeader({{"a", {huge, huge}}, {"b", {huge, huge}}}, {}).ok());
  EXPECT_TRUE(SafetensorsHeader({{"a", {0, 3}}}, {}).ok());
}

}  // namespace
}  // namespace hooke
