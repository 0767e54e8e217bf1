#ifndef HOOKE_CLIENT_JOB_KEYS_H_
#define HOOKE_CLIENT_JOB_KEYS_H_

// The keys of a job file: one table that drives parsing, checking, messages and the check of docs/job-file.md. Pure
// values, no I/O. Used by job_file.cc and by the test of the documentation.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace hooke {

enum class KeyType { kName, kPath, kJsonFile, kText, kChoice, kInteger, kNumber, kBoolean };

// A value of a key; the member of its type is set, and `text` always: of kJsonFile the file's name while it is parsed,
// its content when it is set.
struct KeyValue {
  std::string text;
  uint64_t integer = 0;
  double number = 0;
  bool boolean = false;
};

// Which numbers are allowed. An end that is not `closed` is itself not allowed.
struct KeyRange {
  double min = 0;
  bool min_closed = true;
  std::optional<double> max;
  bool max_closed = true;
};

struct JobKey {
  std::string path;  // "train.optimizer.name": the sections it lies in, then its own name.
  KeyType type;
  KeyRange range;                     // kInteger, kNumber.
  std::vector<std::string> choices;   // kChoice; kInteger: words that are allowed beside numbers.
  std::optional<std::string> preset;  // The default as a file would write it; unset: see default_text.
  std::string
      default_text;  // The default for people. "required", or how it follows from other keys, where preset is unset.
  std::string only_with;  // "train.optimizer.name=adam,adamw": given with another value of that key, it is refused.
  std::string meaning;
  void (*set)(const KeyValue& value, v1::JobSpec& job);

  bool required() const { return !preset.has_value() && default_text == "required"; }
};

// All keys, in the order in which they are documented. Built once, lives as long as the process.
const std::vector<JobKey>& JobKeys();

// nullptr when there is no such key.
const JobKey* FindJobKey(absl::string_view path);

// "an integer from 1 to 1024": completes "must be ...".
std::string AllowedText(const JobKey& key);

// A plain (unquoted) or quoted scalar as the key's value. INVALID_ARGUMENT with "<what is wrong>; must be <what is
// allowed>".
absl::StatusOr<KeyValue> ParseKeyValue(const JobKey& key, absl::string_view text, bool quoted);

// One row of the table in docs/job-file.md.
std::string DocumentationRow(const JobKey& key);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_KEYS_H_
