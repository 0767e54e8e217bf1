#include "wire/layout_difference.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

std::string TypeName(v1::Parameter::Type type) {
  if (type == v1::Parameter::FLOAT32) return "float32";
  return absl::StrCat("type ", static_cast<int>(type));
}

std::string DescribeAt(const v1::Layout& layout, int index) {
  return index < layout.parameters_size() ? Describe(layout.parameters(index)) : "none";
}

}  // namespace

std::optional<LayoutDifference> FindDifference(const v1::Layout& center, const v1::Layout& model) {
  const int most = std::max(center.parameters_size(), model.parameters_size());
  for (int i = 0; i < most; ++i) {
    LayoutDifference at = {i, DescribeAt(center, i), DescribeAt(model, i)};
    if (at.center != at.model) return at;
  }
  return std::nullopt;
}

std::string Describe(const v1::Parameter& parameter) {
  return absl::StrCat(absl::CHexEscape(parameter.name()), " ", TypeName(parameter.type()), " [",
                      absl::StrJoin(parameter.shape(), ", "), "]");
}

}  // namespace hooke
