#include "server/parameters/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::Parameter MakeParameter(const std::string& name, const std::vector<uint64_t>& shape) {
  v1::Parameter parameter;
  parameter.set_name(name);
  parameter.set_type(v1::Parameter::FLOAT32);
  parameter.mutable_shape()->Assign(shape.begin(), shape.end());
  return parameter;
}

v1::Layout MakeLayout(const std::vector<v1::Parameter>& parameters) {
  v1::Layout layout;
  for (const v1::Parameter& parameter : parameters) *layout.add_parameters() = parameter;
  return layout;
}

// The size of the vector is the sum of the products of the shapes. A scalar counts as one.
TEST(CheckLayout, CountsValues) {
  EXPECT_EQ(CheckLayout(MakeLayout({MakeParameter("w", {512, 784}), MakeParameter("b", {512}), MakeParameter("s", {})}))
                .value(),
            512u * 784 + 512 + 1);
}

// A description of the model that is out of range is refused like a parameter.
TEST(CheckLayout, RefusesAWrongDescription) {
  v1::Layout layout = MakeLayout({MakeParameter("w", {2})});
  layout.mutable_model()->set_architecture("mlp");
  EXPECT_EQ(CheckLayout(layout).status().message(), "layout: model: architecture_version is 0; allowed: 1 or more");
}

// Each rule that a layout can break has its own message, which names the parameter.
TEST(CheckLayout, RefusesWhatIsOutOfRange) {
  v1::Parameter untyped = MakeParameter("w", {2});
  untyped.clear_type();
  v1::Parameter unknown = MakeParameter("w", {2});
  unknown.set_type(static_cast<v1::Parameter::Type>(7));
  const uint64_t big = uint64_t{1} << 59;
  struct Case {
    std::vector<v1::Parameter> parameters;
    std::string message;
  };
  const Case cases[] = {
      {{}, "layout: it has no parameters; at least one is needed"},
      {{MakeParameter("", {2})}, "layout: parameter 0 \"\" has a name of 0 bytes; 1 to 255 are allowed"},
      {{MakeParameter("a", {2}), MakeParameter(std::string(256, 'x'), {2})},
       "has a name of 256 bytes; 1 to 255 are allowed"},
      {{MakeParameter("a", {2}), MakeParameter("a", {3})},
       "layout: parameter 1 \"a\" has the name of an earlier one; names are unique"},
      {{untyped}, "layout: parameter 0 \"w\" has type 0; only FLOAT32 (1) is allowed"},
      {{unknown}, "layout: parameter 0 \"w\" has type 7; only FLOAT32 (1) is allowed"},
      {{MakeParameter("w", {2, 0})}, "layout: parameter 0 \"w\" has a dimension of 0; each is at least 1"},
      {{MakeParameter("w", {uint64_t{1} << 32, uint64_t{1} << 32})},
       "layout: parameter 0 \"w\" has too many values; fewer than 2^60 are allowed"},
      {{MakeParameter("w", {~uint64_t{0}})},
       "layout: parameter 0 \"w\" has too many values; fewer than 2^60 are allowed"},
      {{MakeParameter("a", {big}), MakeParameter("b", {big})},
       "layout: parameter 1 \"b\" brings the layout to 2^60 values or more; fewer are allowed"},
  };
  for (const Case& c : cases) {
    const absl::Status status = CheckLayout(MakeLayout(c.parameters)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// For a group with another model, the error names the first parameter that differs, and how it differs.
TEST(CompareLayouts, NamesTheFirstDifference) {
  const v1::Layout center = MakeLayout({MakeParameter("fc1.weight", {512, 784}), MakeParameter("fc1.bias", {512})});
  EXPECT_TRUE(CompareLayouts(center, center).ok());
  struct Case {
    std::vector<v1::Parameter> parameters;
    std::string message;
  };
  const Case cases[] = {
      {{MakeParameter("fc1.weight", {512, 10}), MakeParameter("fc1.bias", {10})},
       "layout differs from the center's at parameter 0: the center has fc1.weight float32 [512, 784], the group has "
       "fc1.weight float32 "
       "[512, 10]; all groups of a job train the same model"},
      {{MakeParameter("fc1.weight", {512, 784}), MakeParameter("fc1.b", {512})},
       "layout differs from the center's at parameter 1: the center has fc1.bias float32 [512], the group has fc1.b "
       "float32 [512]; all "
       "groups of a job train the same model"},
      {{MakeParameter("fc1.weight", {512, 784})},
       "layout differs from the center's at parameter 1: the center has fc1.bias float32 [512], the group has none; "
       "all groups of a job "
       "train the same model"},
      {{MakeParameter("fc1.weight", {512, 784}), MakeParameter("fc1.bias", {512}), MakeParameter("scale", {})},
       "layout differs from the center's at parameter 2: the center has none, the group has scale float32 []; all "
       "groups of a job train "
       "the same model"},
  };
  for (const Case& c : cases) {
    const absl::Status status = CompareLayouts(center, MakeLayout(c.parameters));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), c.message);
  }
}

}  // namespace
}  // namespace hooke
