#include "server/parameters/layout.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "wire/layout_difference.h"
#include "wire/model_metadata.h"

namespace hooke {
namespace {

// A vector has fewer values than this. With four bytes each, its bytes still fit in 64 bits.
constexpr uint64_t kMaxValues = uint64_t{1} << 60;
constexpr size_t kMaxNameBytes = 255;

// Returns the product of the dimensions. INVALID_ARGUMENT if it reaches kMaxValues or a dimension is 0.
absl::StatusOr<uint64_t> CountValues(const v1::Parameter& parameter) {
  uint64_t values = 1;
  for (const uint64_t dimension : parameter.shape()) {
    if (dimension == 0) return absl::InvalidArgumentError("has a dimension of 0; each is at least 1");
    if (dimension >= kMaxValues / values)
      return absl::InvalidArgumentError("has too many values; fewer than 2^60 are allowed");
    values *= dimension;
  }
  return values;
}

absl::Status CheckParameter(const v1::Parameter& parameter) {
  if (parameter.name().empty() || parameter.name().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a name of ", parameter.name().size(), " bytes; 1 to ", kMaxNameBytes, " are allowed"));
  }
  if (parameter.type() != v1::Parameter::FLOAT32) {
    return absl::InvalidArgumentError(
        absl::StrCat("has type ", static_cast<int>(parameter.type()), "; only FLOAT32 (1) is allowed"));
  }
  return absl::OkStatus();
}

absl::Status AtParameter(int index, const v1::Parameter& parameter, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "layout: parameter ", index, " \"", absl::CHexEscape(parameter.name().substr(0, kMaxNameBytes)), "\" ", what));
}

}  // namespace

absl::StatusOr<uint64_t> CheckLayout(const v1::Layout& layout) {
  if (layout.parameters().empty())
    return absl::InvalidArgumentError("layout: it has no parameters; at least one is needed");
  uint64_t total = 0;
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < layout.parameters_size(); ++i) {
    const v1::Parameter& parameter = layout.parameters(i);
    if (absl::Status status = CheckParameter(parameter); !status.ok())
      return AtParameter(i, parameter, status.message());
    if (!names.insert(parameter.name()).second)
      return AtParameter(i, parameter, "has the name of an earlier one; names are unique");
    absl::StatusOr<uint64_t> values = CountValues(parameter);
    if (!values.ok()) return AtParameter(i, parameter, values.status().message());
    total += *values;  // This cannot overflow, because both numbers are below 2^60.
    if (total >= kMaxValues)
      return AtParameter(i, parameter, "brings the layout to 2^60 values or more; fewer are allowed");
  }
  if (layout.has_model()) {
    if (absl::Status status = CheckModelDescription(layout.model()); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat("layout: ", status.message()));
  }
  return total;
}

absl::Status CompareLayouts(const v1::Layout& center, const v1::Layout& group) {
  const std::optional<LayoutDifference> differs = FindDifference(center, group);
  if (!differs.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("layout differs from the center's at parameter ", differs->parameter, ": the center has ",
                   differs->center, ", the group has ", differs->model, "; all groups of a job train the same model"));
}

}  // namespace hooke
