#include "worker/model/model_file.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFileTest : public ::testing::Test {
 protected:
  ~ModelFileTest() override { std::filesystem::remove(path_); }

  absl::StatusOr<ModelFile> Read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ReadModelFile(path_);
  }

  // Returns a file with this header and `values` values 0, 1, 2, ...
  static std::string File(const std::string& header, int values) {
    std::string bytes;
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(header.size() >> shift & 0xff));
    bytes += header;
    for (int i = 0; i < values; ++i) {
      const float value = static_cast<float>(i);
      bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
    return bytes;
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/model_file_test_", getpid());
};

constexpr char kHeader[] = R"({"__metadata__":{"mean":"0.5"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]},)"
                           R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";

// Tensors come in the order of their values in the file, whatever the order of their names.
TEST_F(ModelFileTest, ReadsTensorsAndMetadata) {
  const absl::StatusOr<ModelFile> model = Read(File(kHeader, 5));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 2u);
  EXPECT_EQ(model->tensors[0].name, "s");
  EXPECT_EQ(model->tensors[1].name, "w");
  EXPECT_THAT(model->tensors[1].shape, ElementsAre(2, 2));
  EXPECT_THAT(model->values, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(model->metadata.at("mean"), "0.5");
}

// A file that is cut short anywhere is refused. So is a file that is malformed in any other way.
TEST_F(ModelFileTest, RefusesWhatIsNoModel) {
  const std::string sound = File(kHeader, 5);
  for (size_t bytes = 0; bytes < sound.size(); ++bytes) {
    EXPECT_EQ(Read(sound.substr(0, bytes)).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
  const struct {
    std::string error;
    std::string bytes;
  } cases[] = {
      {"it is shorter than its header", std::string(8, '\xff')},
      {"its header is no JSON object", File("[1]", 0)},
      {"its header is no JSON object", File(std::string(100000, '['), 0)},
      {"its metadata are no pairs of text", File(R"({"__metadata__":7})", 0)},
      {"\"a\" of its metadata is no text", File(R"({"__metadata__":{"a":7}})", 0)},
      {"\"w\" is no float32 tensor", File(R"({"w":7})", 1)},
      {"\"w\" is no float32 tensor", File(R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 1)},
      {"\"w\" is no float32 tensor", File(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 1)},
      {"\"w\" is no float32 tensor", File(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 1)},
      {"\"w\" is no float32 tensor", File(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 1)},
      {"\"w\" is no float32 tensor",
       File(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0)},
      {"its tensors do not join at byte 0", File(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 2)},
      {"it has 8 bytes of values instead of 4", File(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 2)},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(std::string(Read(one.bytes).status().message()), HasSubstr(one.error));
  }
  EXPECT_EQ(ReadModelFile(path_ + "none").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hooke
