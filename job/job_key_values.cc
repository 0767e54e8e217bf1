// Reads a key's value from text, checks it, and describes the allowed values.
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "job/command.h"
#include "job/file_manifest.h"
#include "job/job_keys.h"
#include "job/site_command.h"
#include "job/visible_text.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr size_t kPathBytesMax = 4096;

// Returns the number in a short form, such as "0.001" or "1e-9".
std::string ShortNumber(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e16) return absl::StrCat(static_cast<int64_t>(value));
  return absl::StrReplaceAll(absl::StrCat(value), {{"e-0", "e-"}});
}

bool InRange(const KeyRange& range, double value) {
  return value >= range.min && value <= range.max && (value == 0 || value >= kSmallest);
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= 63 && absl::ascii_islower(text.front()) &&
         absl::c_all_of(text, [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; });
}

absl::Status Wrong(const JobKey& key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; must be ", AllowedText(key)));
}

bool LooksLikeInteger(absl::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
}

// True for numbers of any size, like "-1.5e400".
bool LooksLikeNumber(absl::string_view text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && absl::c_any_of(text, absl::ascii_isdigit);
}

// True for a number that is not 0 but reads as 0, like "1e-400".
bool Vanishes(absl::string_view text, double value) {
  const absl::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  return value == 0 && absl::c_any_of(mantissa, [](char c) { return c >= '1' && c <= '9'; });
}

// Returns a number as the file spells it, cut if it is long: a file may spell a million digits.
std::string Shown(absl::string_view text) {
  constexpr size_t kShown = 60;
  return absl::StrCat(text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

absl::Status TooSmall(const JobKey& key, absl::string_view text) {
  return Wrong(key,
               absl::StrCat(Shown(text), " is too small: a number other than 0 is at least ", ShortNumber(kSmallest)));
}

}  // namespace

std::string AllowedText(const JobKey& key) {
  switch (key.type) {
    case KeyType::kName:
      return "1 to 63 characters of a-z, 0-9 and -, the first a letter";
    case KeyType::kPath:
      return "a path prefix of at most 4096 bytes, without control characters";
    case KeyType::kFolder:
      return "a path of at most 4096 bytes, without control characters";
    case KeyType::kJsonFile:
      return "a JSON file of at most 64 KiB";
    case KeyType::kSite:
    case KeyType::kOwner:
      return "empty, or 1 to 63 characters of A-Z, a-z, 0-9, ., _ and -";
    case KeyType::kChoice:
      return key.choices.size() == 1 ? key.choices.front() : absl::StrCat("one of ", absl::StrJoin(key.choices, ", "));
    case KeyType::kInteger:
      return absl::StrCat("an integer from ", ShortNumber(key.range.min), " to ", ShortNumber(key.range.max),
                          key.choices.empty() ? "" : ", or ", absl::StrJoin(key.choices, ", "));
    case KeyType::kNumber:
      return absl::StrCat("a number from ", ShortNumber(key.range.min), " to ", ShortNumber(key.range.max));
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kArguments:
      return absl::StrCat("a list of 1 to ", kArgumentsMax, " texts, together at most ", kCommandBytesMax >> 10,
                          " KiB");
    case KeyType::kEnvironment:
      return absl::StrCat("a map of at most ", kVariablesMax, " names to texts, together at most ",
                          kCommandBytesMax >> 10, " KiB");
    case KeyType::kFiles:
      return absl::StrCat("a list of 1 to ", kFilesMax, " relative paths without \"..\"");
    case KeyType::kSites:
      return absl::StrCat("a map of at most ", kSitesMax,
                          " sites, each to a map with interpreter or virtual_environment, environment, and slurm");
  }
  return "";
}

absl::StatusOr<KeyValue> ParseKeyValue(const JobKey& key, absl::string_view text, bool quoted) {
  KeyValue value;
  value.text = std::string(text);
  switch (key.type) {
    case KeyType::kInteger:
      if (absl::c_linear_search(key.choices, text)) return value;
      if (quoted || !LooksLikeInteger(text)) return Wrong(key, absl::StrCat(Quoted(text), " is not an integer"));
      if (!absl::SimpleAtoi(text, &value.integer)) return Wrong(key, absl::StrCat(Shown(text), " is out of range"));
      break;
    case KeyType::kNumber:
      if (quoted || !LooksLikeNumber(text)) return Wrong(key, absl::StrCat(Quoted(text), " is not a number"));
      if (!absl::SimpleAtod(text, &value.number) || Vanishes(text, value.number)) return TooSmall(key, text);
      break;
    case KeyType::kBoolean:
      if (quoted || (text != "true" && text != "false")) {
        return Wrong(key, absl::StrCat(Quoted(text), " is neither true nor false"));
      }
      value.boolean = text == "true";
      break;
    default:
      break;
  }
  if (absl::Status status = CheckKeyValue(key, value); !status.ok()) return status;
  return value;
}

absl::Status CheckKeyValue(const JobKey& key, const KeyValue& value) {
  const std::string& text = value.text;
  switch (key.type) {
    case KeyType::kName:
      return IsName(text) ? absl::OkStatus() : Wrong(key, absl::StrCat(Quoted(text), " is not a name"));
    case KeyType::kPath:
    case KeyType::kFolder:
    case KeyType::kJsonFile:
      if (text.size() <= kPathBytesMax && IsVisibleText(text)) return absl::OkStatus();
      return Wrong(key, absl::StrCat(Quoted(text), " is not a path"));
    case KeyType::kSite:
      if (text.empty() || IsNodeName(text)) return absl::OkStatus();
      return Wrong(key, absl::StrCat(Quoted(text), " is not a site's name"));
    case KeyType::kOwner:
      if (text.empty() || IsNodeName(text)) return absl::OkStatus();
      return Wrong(key, absl::StrCat(Quoted(text), " is not an owner's name"));
    case KeyType::kChoice:
      if (absl::c_linear_search(key.choices, text)) return absl::OkStatus();
      return Wrong(key, absl::StrCat(Quoted(text), " is not known"));
    case KeyType::kInteger:
      if (absl::c_linear_search(key.choices, text)) return absl::OkStatus();
      if (InRange(key.range, static_cast<double>(value.integer))) return absl::OkStatus();
      return Wrong(key, absl::StrCat(Shown(text), " is out of range"));
    case KeyType::kNumber:
      if (InRange(key.range, value.number)) return absl::OkStatus();
      if (value.number > 0 && value.number < kSmallest) return TooSmall(key, text);
      return Wrong(key, absl::StrCat(Shown(text), " is out of range"));
    case KeyType::kBoolean:
      return absl::OkStatus();
    case KeyType::kArguments:
    case KeyType::kEnvironment: {
      const bool arguments = key.type == KeyType::kArguments;
      const absl::Status status = arguments ? CheckArguments(value.texts) : CheckVariables(value.texts);
      return status.ok() ? status : Wrong(key, status.message());
    }
    case KeyType::kFiles:  // Checked elsewhere: by CheckJob, and by the reader of the job file.
    case KeyType::kSites:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace hooke
