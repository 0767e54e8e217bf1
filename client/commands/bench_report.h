#ifndef HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_
#define HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_

// What hooke-bench prints (worker/bench/document.h says what is in it), for people. Pure.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// NOLINTNEXTLINE(bugprone-exception-escape): moving a JSON value throws nothing.
struct TuningReport {
  nlohmann::ordered_json document;
  std::string tuning;  // The text of the tuning file.
  std::string table;   // A line for each operation, kind of values and size: Hooke's default, and the fastest way.
  std::string notes;   // How many rules there are, and what was not measured for lack of time.
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving a JSON value throws nothing.
struct ExplanationReport {
  nlohmann::ordered_json document;
  std::string table;
};

// INTERNAL: it is not what this version of hooke-bench prints.
absl::StatusOr<TuningReport> ReportTuning(absl::string_view printed);
absl::StatusOr<ExplanationReport> ReportExplanation(absl::string_view printed);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_BENCH_REPORT_H_
