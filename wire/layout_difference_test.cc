#include "wire/layout_difference.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hooke {
namespace {

struct Named {
  std::string name;
  std::vector<uint64_t> shape;
};

v1::Layout MakeLayout(const std::vector<Named>& parameters) {
  v1::Layout layout;
  for (const Named& each : parameters) {
    v1::Parameter& parameter = *layout.add_parameters();
    parameter.set_name(each.name);
    parameter.set_type(v1::Parameter::FLOAT32);
    for (const uint64_t dimension : each.shape) parameter.add_shape(dimension);
  }
  return layout;
}

// FindDifference finds the first parameter that differs in name or shape, or is missing on one side.
TEST(FindDifference, Table) {
  const v1::Layout center = MakeLayout({{"w", {2, 3}}, {"b", {2}}});
  struct Case {
    std::vector<Named> model;
    int parameter;
    std::string center;
    std::string found;
  };
  const Case cases[] = {
      {{{"v", {2, 3}}, {"b", {2}}}, 0, "w float32 [2, 3]", "v float32 [2, 3]"},
      {{{"w", {2, 3}}, {"b", {3}}}, 1, "b float32 [2]", "b float32 [3]"},
      {{{"w", {2, 3}}}, 1, "b float32 [2]", "none"},
      {{}, 0, "w float32 [2, 3]", "none"},
      {{{"w", {2, 3}}, {"b", {2}}, {"s", {}}}, 2, "none", "s float32 []"},
  };
  for (const Case& c : cases) {
    const std::optional<LayoutDifference> difference = FindDifference(center, MakeLayout(c.model));
    ASSERT_TRUE(difference.has_value()) << c.found;
    EXPECT_EQ(difference->parameter, c.parameter);
    EXPECT_EQ(difference->center, c.center);
    EXPECT_EQ(difference->model, c.found);
  }
  EXPECT_FALSE(FindDifference(center, center).has_value());
  EXPECT_FALSE(FindDifference({}, {}).has_value());
}

// Parameters may also differ in type. Names are escaped, since a terminal may show them.
TEST(FindDifference, TypesAndNames) {
  v1::Layout center = MakeLayout({{"a\nb", {1}}});
  v1::Layout model = center;
  model.mutable_parameters(0)->set_type(v1::Parameter::TYPE_UNSPECIFIED);
  const std::optional<LayoutDifference> difference = FindDifference(center, model);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->center, "a\\nb float32 [1]");
  EXPECT_EQ(difference->model, "a\\nb type 0 [1]");
}

}  // namespace
}  // namespace hooke
