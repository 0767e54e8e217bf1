#include "wire/model_metadata.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

v1::ModelDescription Lenet() {
  v1::ModelDescription model;
  model.set_architecture("lenet");
  model.set_architecture_version(1);
  for (const uint32_t extent : {1, 28, 28}) model.add_input_shape(extent);
  model.set_input_type("uint8");
  model.set_input_scale(255);
  model.set_mean(0.2860405969887955);
  model.set_deviation(0.3530242445149223);
  model.set_classes(10);
  return model;
}

std::map<std::string, std::string> Texts(const v1::ModelDescription& model) {
  const auto pairs = ModelMetadata(model);
  return {pairs.begin(), pairs.end()};
}

// The pairs have the form that docs/export.md shows to users.
TEST(ModelMetadata, SaysWhatTheModelIs) {
  const std::map<std::string, std::string> expected = {
      {"architecture", "lenet"},      {"architecture_version", "1"},  {"classes", "10"},
      {"input_scale", "255"},         {"input_shape", "[1, 28, 28]"}, {"input_type", "uint8"},
      {"mean", "0.2860405969887955"}, {"std", "0.3530242445149223"}};
  EXPECT_EQ(Texts(Lenet()), expected);
}

// Numbers read back bitwise equal to those that training used.
TEST(ModelMetadata, GivesTheSameNumbersAgain) {
  v1::ModelDescription model = Lenet();
  double mean = 1.0 / 3;
  for (int i = 0; i < 1000; ++i) {
    model.set_mean(mean);
    model.set_deviation(std::sqrt(std::abs(mean)));
    const absl::StatusOr<v1::ModelDescription> read = ReadModelMetadata(Texts(model));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*read, model)) << read->ShortDebugString();
    mean = -std::nextafter(mean * 1.37, 1e300);
  }
  EXPECT_EQ(ShortestDecimal(0.1), "0.1");
  EXPECT_EQ(ShortestDecimal(1e-300), "1e-300");
}

// Every field has a range. A value outside is refused, and the error names the field.
TEST(ModelMetadata, RefusesWhatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const struct {
    const char* error;
    std::function<void(v1::ModelDescription&)> change;
  } cases[] = {
      {"architecture is of 0 bytes", [](auto& model) { model.clear_architecture(); }},
      {"architecture is of 256 bytes", [](auto& model) { model.set_architecture(std::string(256, 'x')); }},
      {"architecture_version is 0", [](auto& model) { model.clear_architecture_version(); }},
      {"input_shape is of 0 numbers", [](auto& model) { model.clear_input_shape(); }},
      {"input_shape is of 9 numbers",
       [](auto& model) {
         for (int i = 0; i < 6; ++i) model.add_input_shape(1);
       }},
      {"a number of input_shape is 0", [](auto& model) { model.add_input_shape(0); }},
      {"input_type is \"float8\"", [](auto& model) { model.set_input_type("float8"); }},
      {"input_scale is 0", [](auto& model) { model.set_input_scale(0); }},
      {"input_scale is nan", [nan](auto& model) { model.set_input_scale(nan); }},
      {"mean is inf", [infinite](auto& model) { model.set_mean(infinite); }},
      {"deviation is -1", [](auto& model) { model.set_deviation(-1); }},
      {"classes is 0", [](auto& model) { model.set_classes(0); }},
      {"classes is 1048577", [](auto& model) { model.set_classes((1 << 20) + 1); }},
  };
  for (const auto& one : cases) {
    v1::ModelDescription model = Lenet();
    one.change(model);
    EXPECT_THAT(std::string(CheckModelDescription(model).message()), HasSubstr(one.error));
    EXPECT_EQ(ReadModelMetadata(Texts(model)).status().code(), absl::StatusCode::kInvalidArgument) << one.error;
  }
}

// A file of another program or an older version lacks keys or has unknown words. The error names the key.
TEST(ModelMetadata, NamesTheKeyThatIsWrong) {
  for (const auto& [key, text] : Texts(Lenet())) {
    std::map<std::string, std::string> metadata = Texts(Lenet());
    metadata.erase(key);
    EXPECT_EQ(ReadModelMetadata(metadata).status(), absl::InvalidArgumentError("the metadata has no \"" + key + "\""));
    if (key == "architecture" || key == "input_type") continue;
    for (const char* wrong : {"", "x", "[1, ]", "[1, 28", "1e999x"}) {
      metadata[key] = wrong;
      EXPECT_EQ(ReadModelMetadata(metadata).status().message(),
                "\"" + key + "\" of the metadata is \"" + wrong + "\", which is no number");
    }
  }
}

}  // namespace
}  // namespace hooke
