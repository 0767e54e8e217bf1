// What a key's value may be: reading it, and saying it.
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/job_keys.h"

namespace hooke {
namespace {

std::string ShortNumber(double value) {
  return value == std::floor(value) && std::abs(value) < 1e16 ? absl::StrCat(static_cast<int64_t>(value))
                                                              : absl::StrCat(value);
}

bool InRange(const KeyRange& range, double value) {
  const bool above = range.min_closed ? value >= range.min : value > range.min;
  const bool below = !range.max.has_value() || (range.max_closed ? value <= *range.max : value < *range.max);
  return above && below;
}

std::string RangeText(const KeyRange& range) {
  const std::string min = ShortNumber(range.min);
  if (!range.max.has_value()) return absl::StrCat(range.min_closed ? "of at least " : "above ", min);
  const std::string max = ShortNumber(*range.max);
  if (range.min_closed) return absl::StrCat("from ", min, range.max_closed ? " to " : " to below ", max);
  return absl::StrCat("above ", min, range.max_closed ? " and at most " : " and below ", max);
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= 63 && absl::ascii_islower(text.front()) &&
         absl::c_all_of(text, [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; });
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 60;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kShown)), text.size() > kShown ? "..." : "", "\"");
}

absl::Status Wrong(const JobKey& key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; must be ", AllowedText(key)));
}

bool LooksLikeInteger(absl::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
}

}  // namespace

std::string AllowedText(const JobKey& key) {
  switch (key.type) {
    case KeyType::kName:
      return "1 to 63 characters of a-z, 0-9 and -, the first a letter";
    case KeyType::kPath:
      return "a path prefix";
    case KeyType::kJsonFile:
      return "a JSON file of at most 64 KiB";
    case KeyType::kText:
      return "a text of at most 63 bytes";
    case KeyType::kChoice:
      return key.choices.size() == 1 ? key.choices.front() : absl::StrCat("one of ", absl::StrJoin(key.choices, ", "));
    case KeyType::kInteger:
      return absl::StrCat("an integer ", RangeText(key.range), key.choices.empty() ? "" : ", or ",
                          absl::StrJoin(key.choices, ", "));
    case KeyType::kNumber:
      return absl::StrCat("a number ", RangeText(key.range));
    case KeyType::kBoolean:
      return "true or false";
  }
  return "";
}

absl::StatusOr<KeyValue> ParseKeyValue(const JobKey& key, absl::string_view text, bool quoted) {
  KeyValue value;
  value.text = std::string(text);
  switch (key.type) {
    case KeyType::kName:
      if (!IsName(text)) return Wrong(key, absl::StrCat(Quoted(text), " is not a name"));
      break;
    case KeyType::kPath:
    case KeyType::kJsonFile:
      if (text.empty() || absl::StrContains(text, '\0'))
        return Wrong(key, absl::StrCat(Quoted(text), " is not a path"));
      break;
    case KeyType::kText:
      if (text.size() > 63) return Wrong(key, "is too long");
      break;
    case KeyType::kChoice:
      if (!absl::c_linear_search(key.choices, text)) return Wrong(key, absl::StrCat(Quoted(text), " is not known"));
      break;
    case KeyType::kInteger:
      if (absl::c_linear_search(key.choices, text)) break;
      if (quoted || !LooksLikeInteger(text)) return Wrong(key, absl::StrCat(Quoted(text), " is not an integer"));
      if (!absl::SimpleAtoi(text, &value.integer) || !InRange(key.range, static_cast<double>(value.integer))) {
        return Wrong(key, absl::StrCat(text, " is out of range"));
      }
      break;
    case KeyType::kNumber:
      if (quoted || !absl::SimpleAtod(text, &value.number) || !std::isfinite(value.number)) {
        return Wrong(key, absl::StrCat(Quoted(text), " is not a number"));
      }
      if (!InRange(key.range, value.number)) return Wrong(key, absl::StrCat(text, " is out of range"));
      break;
    case KeyType::kBoolean:
      if (quoted || (text != "true" && text != "false"))
        return Wrong(key, absl::StrCat(Quoted(text), " is neither true nor false"));
      value.boolean = text == "true";
      break;
  }
  return value;
}

std::string DocumentationRow(const JobKey& key) {
  const std::string condition =
      key.only_with.empty()
          ? ""
          : absl::StrCat(" Only with `", absl::StrJoin(absl::StrSplit(key.only_with, '='), ": "), "`.");
  return absl::StrCat(
      "| `", key.path, "` | ",
      key.preset.has_value() && !key.preset->empty() ? absl::StrCat("`", *key.preset, "`") : key.default_text, " | ",
      AllowedText(key), " | ", key.meaning, condition, " |");
}

}  // namespace hooke
