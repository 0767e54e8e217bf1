#ifndef HOOKE_JOB_JOB_KEYS_H_
#define HOOKE_JOB_JOB_KEYS_H_

// The keys of a job, as one table. The client reads job files with it, the coordinator checks a JobSpec with it, and
// the tables of docs/job-file.md are made from it. Most keys have the path of their field in JobSpec. Pure values, no
// I/O.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// kPath: the start of files' paths. kArguments: a program and its arguments. kEnvironment: variables with values.
// kFiles: relative paths, which in a JobSpec are a FileSet. kSites: SiteSpecs by the names of sites.
enum class KeyType {
  kName,
  kPath,
  kFolder,
  kJsonFile,
  kSite,
  kOwner,
  kChoice,
  kInteger,
  kNumber,
  kBoolean,
  kArguments,
  kEnvironment,
  kFiles,
  kSites
};

// The value of a key. `text` is always set, and so is the member of the key's type. For a kJsonFile, ParseKeyValue
// returns the file's name as `text`; in a JobSpec the text is the file's content.
struct KeyValue {
  std::string text;
  // kArguments: the arguments. kEnvironment: "NAME=value" for each variable. kFiles: the paths, only in a job file.
  std::vector<std::string> texts;
  uint64_t integer = 0;
  double number = 0;
  bool boolean = false;
};

// The allowed numbers; `min` and `max` are themselves allowed. Numbers between 0 and kSmallest are refused: as a
// float32 they would be 0 or too small to compute with.
struct KeyRange {
  double min = 0;
  double max = 0;
};
constexpr double kSmallest = 1e-20;

// The most ranks of a job, and so of a group.
constexpr int kJobRanksMax = 16384;

// The largest allowed file of a kJsonFile key, in bytes. The file's content travels with the job.
constexpr size_t kJsonBytesMax = 64 << 10;

struct JobKey {
  std::string path;   // The sections and the key's own name: "train.optimizer.name".
  std::string field;  // The path of the field in JobSpec. It may differ from `path`: "model.name" for "model".
  KeyType type;
  KeyRange range;  // For kInteger and kNumber.
  // kChoice: the allowed words. kInteger: words that are allowed besides numbers. The word "auto" sets the boolean
  // field <field>_auto of JobSpec.
  std::vector<std::string> choices;
  std::optional<std::string> preset;  // The default as a job file would spell it. If unset, default_text explains it.
  // Shown to people. If `preset` is unset: "required", or how the default follows from other keys.
  std::string default_text;
  // Example: "train.optimizer.name=adam,adamw". A job file may give this key only if it has one of these values for
  // that other key. A JobSpec always has the field. If the key does not apply, the value is checked only if it is a
  // choice or `unused` is set.
  //
  // "command": the key applies only to jobs with a command; "!command": only to jobs without one. A JobSpec has such a
  // field only if the key applies. `required` holds only then, too.
  std::string only_with;
  // In a JobSpec, values from 0 to `unused` mean that the job does not use this key. They are allowed even outside the
  // range. If the key does not apply, no other values are allowed.
  std::optional<double> unused;
  std::string meaning;

  bool required() const { return !preset.has_value() && default_text == "required"; }
};

// Returns all keys, in the order of the documentation. They are built once and live as long as the process.
const std::vector<JobKey>& JobKeys();

// Returns the key with this path, or nullptr if there is none.
const JobKey* FindJobKey(absl::string_view path);

// Returns text that completes "must be ...", like "an integer from 1 to 1024".
std::string AllowedText(const JobKey& key);

// Whether the key is a list or a map of texts in a job file, and in a JobSpec, too.
inline bool HasTexts(const JobKey& key) { return key.type == KeyType::kArguments || key.type == KeyType::kEnvironment; }

// Whether the key is a message in a JobSpec. SetField does not set it, and no function here reads it from a job file.
inline bool IsMessage(const JobKey& key) { return key.type == KeyType::kFiles || key.type == KeyType::kSites; }

// Reads a scalar of a job file as the value of a key without texts; `quoted` if the file has it in quotes. The message
// of INVALID_ARGUMENT is "<the fault>; must be <the allowed values>", with the scalar escaped.
absl::StatusOr<KeyValue> ParseKeyValue(const JobKey& key, absl::string_view text, bool quoted);

// Checks a value of the right type against the key's range or choices. The message of INVALID_ARGUMENT has the same
// form as ParseKeyValue's.
absl::Status CheckKeyValue(const JobKey& key, const KeyValue& value);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_KEYS_H_
