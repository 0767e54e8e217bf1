#include "wire/model_metadata.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

constexpr size_t kNameBytesMax = 255;
constexpr int kDimensionsMax = 8;
constexpr uint32_t kClassesMax = 1 << 20;

absl::Status Bad(absl::string_view field, absl::string_view is, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("model: ", field, " is ", is, "; allowed: ", allowed));
}

using Texts = std::map<std::string, std::string>;

absl::StatusOr<std::string> Text(const Texts& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return absl::InvalidArgumentError(absl::StrCat("the metadata has no \"", key, "\""));
  return found->second;
}

absl::Status NoNumber(absl::string_view key, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\" of the metadata is \"", text.substr(0, kNameBytesMax), "\", which is no number"));
}

absl::StatusOr<uint32_t> Whole(const Texts& metadata, const std::string& key) {
  absl::StatusOr<std::string> text = Text(metadata, key);
  if (!text.ok()) return text.status();
  uint32_t number = 0;
  if (!absl::SimpleAtoi(*text, &number)) return NoNumber(key, *text);
  return number;
}

absl::StatusOr<double> Decimal(const Texts& metadata, const std::string& key) {
  absl::StatusOr<std::string> text = Text(metadata, key);
  if (!text.ok()) return text.status();
  double number = 0;
  if (!absl::SimpleAtod(*text, &number)) return NoNumber(key, *text);
  return number;
}

// Reads a list of numbers, such as "[1, 28, 28]".
absl::StatusOr<std::vector<uint32_t>> Shape(const Texts& metadata, const std::string& key) {
  absl::StatusOr<std::string> text = Text(metadata, key);
  if (!text.ok()) return text.status();
  absl::string_view list = *text;
  std::vector<uint32_t> shape;
  if (!absl::ConsumePrefix(&list, "[") || !absl::ConsumeSuffix(&list, "]")) return NoNumber(key, *text);
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    uint32_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent)) return NoNumber(key, *text);
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

absl::Status CheckModelDescription(const v1::ModelDescription& model) {
  if (model.architecture().empty() || model.architecture().size() > kNameBytesMax) {
    return Bad("architecture", absl::StrCat("of ", model.architecture().size(), " bytes"), "1 to 255 bytes");
  }
  if (model.architecture_version() < 1) return Bad("architecture_version", "0", "1 or more");
  if (model.input_shape().empty() || model.input_shape_size() > kDimensionsMax) {
    return Bad("input_shape", absl::StrCat("of ", model.input_shape_size(), " numbers"), "1 to 8");
  }
  for (const uint32_t extent : model.input_shape()) {
    if (extent == 0) return Bad("a number of input_shape", "0", "1 or more");
  }
  if (model.input_type() != "uint8") {
    return Bad("input_type", absl::StrCat("\"", model.input_type().substr(0, kNameBytesMax), "\""), "uint8");
  }
  if (!(std::isfinite(model.input_scale()) && model.input_scale() > 0)) {
    return Bad("input_scale", ShortestDecimal(model.input_scale()), "finite, more than 0");
  }
  if (!std::isfinite(model.mean())) return Bad("mean", ShortestDecimal(model.mean()), "finite");
  if (!(std::isfinite(model.deviation()) && model.deviation() > 0)) {
    return Bad("deviation", ShortestDecimal(model.deviation()), "finite, more than 0");
  }
  if (model.classes() < 1 || model.classes() > kClassesMax) {
    return Bad("classes", absl::StrCat(model.classes()), "1 to 2^20");
  }
  return absl::OkStatus();
}

std::vector<std::pair<std::string, std::string>> ModelMetadata(const v1::ModelDescription& model) {
  return {
      {"architecture", model.architecture()},
      {"architecture_version", absl::StrCat(model.architecture_version())},
      {"input_shape", absl::StrCat("[", absl::StrJoin(model.input_shape(), ", "), "]")},
      {"input_type", model.input_type()},
      {"input_scale", ShortestDecimal(model.input_scale())},
      {"mean", ShortestDecimal(model.mean())},
      {"std", ShortestDecimal(model.deviation())},
      {"classes", absl::StrCat(model.classes())},
  };
}

absl::StatusOr<v1::ModelDescription> ReadModelMetadata(const Texts& metadata) {
  const absl::StatusOr<std::string> architecture = Text(metadata, "architecture");
  const absl::StatusOr<uint32_t> version = Whole(metadata, "architecture_version");
  const absl::StatusOr<std::vector<uint32_t>> shape = Shape(metadata, "input_shape");
  const absl::StatusOr<std::string> type = Text(metadata, "input_type");
  const absl::StatusOr<double> scale = Decimal(metadata, "input_scale");
  const absl::StatusOr<double> mean = Decimal(metadata, "mean");
  const absl::StatusOr<double> deviation = Decimal(metadata, "std");
  const absl::StatusOr<uint32_t> classes = Whole(metadata, "classes");
  for (const absl::Status& status : {architecture.status(), version.status(), shape.status(), type.status(),
                                     scale.status(), mean.status(), deviation.status(), classes.status()}) {
    if (!status.ok()) return status;
  }
  v1::ModelDescription model;
  model.set_architecture(*architecture);
  model.set_architecture_version(*version);
  model.mutable_input_shape()->Assign(shape->begin(), shape->end());
  model.set_input_type(*type);
  model.set_input_scale(*scale);
  model.set_mean(*mean);
  model.set_deviation(*deviation);
  model.set_classes(*classes);
  if (absl::Status status = CheckModelDescription(model); !status.ok()) return status;
  return model;
}

std::string ShortestDecimal(double number) {
  char text[32];  // A double needs at most 24 characters.
  const std::to_chars_result end = std::to_chars(std::begin(text), std::end(text), number);
  return {text, end.ptr};
}

}  // namespace hooke
