#ifndef HOOKE_JOB_JOB_KEYS_H_
#define HOOKE_JOB_JOB_KEYS_H_

// The keys of a job: one table, from which the client reads job files, the coordinator checks a JobSpec, and
// docs/job-file.md is made. A key's path is that of its field in JobSpec. Pure values, no I/O.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

enum class KeyType { kName, kPath, kJsonFile, kSite, kChoice, kInteger, kNumber, kBoolean };

// A value of a key; the member of its type is set, and `text` always: of kJsonFile the file's name while it is parsed,
// its content when it is set.
struct KeyValue {
  std::string text;
  uint64_t integer = 0;
  double number = 0;
  bool boolean = false;
};

// Both ends are allowed. Between 0 and kSmallest lies no number that a job can give: as a float32 it would be 0, or
// too small to count with.
struct KeyRange {
  double min = 0;
  double max = 0;
};
constexpr double kSmallest = 1e-20;

constexpr size_t kJsonBytesMax = 64 << 10;  // Of a file that travels with the job.

struct JobKey {
  std::string path;   // "train.optimizer.name": the sections it lies in, then its own name.
  std::string field;  // Where JobSpec has it: "model.name" for "model", else as `path`.
  KeyType type;
  KeyRange range;  // kInteger, kNumber.
  // kChoice. kInteger: words that are allowed beside numbers; the word "auto" is the field FIELD_auto in JobSpec.
  std::vector<std::string> choices;
  std::optional<std::string> preset;  // The default as a file would write it; unset: see default_text.
  std::string default_text;  // For people; where `preset` is unset, "required" or how it follows from other keys.
  // "train.optimizer.name=adam,adamw": a job file that gives it with another value of that key is refused. A JobSpec
  // has every field; where the key does not apply, its value is not looked at, unless it is a choice or `unused` is
  // set.
  std::string only_with;
  // Values from 0 to here say in a JobSpec that the job does without; they are allowed whatever the range says, and no
  // others are where the key does not apply.
  std::optional<double> unused;
  std::string meaning;

  bool required() const { return !preset.has_value() && default_text == "required"; }
};

// All keys, in the order in which they are documented. Built once, lives as long as the process.
const std::vector<JobKey>& JobKeys();

// nullptr when there is no such key.
const JobKey* FindJobKey(absl::string_view path);

// "an integer from 1 to 1024": completes "must be ...".
std::string AllowedText(const JobKey& key);

// A plain (unquoted) or quoted scalar as the key's value. INVALID_ARGUMENT with "<what is wrong>; must be <what is
// allowed>"; what the scalar says is escaped in it.
absl::StatusOr<KeyValue> ParseKeyValue(const JobKey& key, absl::string_view text, bool quoted);

// INVALID_ARGUMENT in the same words where a value is not allowed that already has its type.
absl::Status CheckKeyValue(const JobKey& key, const KeyValue& value);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_KEYS_H_
