#ifndef HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_
#define HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_

// Turns what hooke-bench prints (see worker/bench/document.h) into text for people. Pure.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// NOLINTNEXTLINE(bugprone-exception-escape): moving a JSON value throws nothing.
struct TuningReport {
  nlohmann::ordered_json document;
  std::string tuning;  // The text of the tuning file.
  // One line for each operation, kind of values and size: Hooke's default, and the fastest algorithm.
  std::string table;
  // A text with the number of rules, and of the measurements that were left out for lack of time.
  std::string notes;
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving a JSON value throws nothing.
struct ExplanationReport {
  nlohmann::ordered_json document;
  std::string table;
};

// Both functions return INTERNAL if they cannot read the text, as from a hooke-bench of another version.
absl::StatusOr<TuningReport> ReportTuning(absl::string_view printed);
absl::StatusOr<ExplanationReport> ReportExplanation(absl::string_view printed);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_
