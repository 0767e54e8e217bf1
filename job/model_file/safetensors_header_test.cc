#include "job/model_file/safetensors_header.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// The smallest file equals the example of safetensors_header.h, byte by byte.
TEST(SafetensorsHeaderTest, TheSmallestFile) {
  absl::StatusOr<std::string> header = SafetensorsHeader({{"s", {}}}, {});
  ASSERT_TRUE(header.ok()) << header.status();
  std::string expected = R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(*header, absl::StrCat(std::string("\x38\0\0\0\0\0\0\0", 8), expected));
}

// A reader that does not share our code finds the names, shapes and offsets.
TEST(SafetensorsHeaderTest, ReadsBack) {
  const std::vector<TensorShape> tensors = {{"conv1.weight", {2, 1, 3}}, {"bias \"q\"", {2}}, {"scale", {}}};
  ASSERT_EQ(CountValues(tensors), 9u);
  const absl::StatusOr<std::string> head = SafetensorsHeader(tensors, {{"hooke_job", "fashion-1"}});
  ASSERT_TRUE(head.ok()) << head.status();
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>((*head)[static_cast<size_t>(i)]);
  EXPECT_EQ(header_bytes % 8, 0u);
  ASSERT_EQ(head->size(), 8 + header_bytes);
  const nlohmann::json header = nlohmann::json::parse(head->substr(8));
  EXPECT_EQ(header["__metadata__"]["hooke_job"], "fashion-1");
  const nlohmann::json& bias = header["bias \"q\""];
  EXPECT_EQ(bias["dtype"], "F32");
  EXPECT_EQ(bias["shape"], nlohmann::json({2}));
  EXPECT_EQ(bias["data_offsets"], nlohmann::json({24, 32}));
  EXPECT_EQ(header["conv1.weight"]["shape"], nlohmann::json({2, 1, 3}));
}

// Layouts that a file cannot hold are refused.
TEST(SafetensorsHeaderTest, LayoutsThatCannotBe) {
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
