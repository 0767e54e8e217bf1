#include "client/commands/bench_report.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

absl::Status Strange(const ordered_json::exception& error) {
  return absl::InternalError(
      absl::StrCat("hooke-bench printed what this hooke cannot read (", error.what(), "); are both of one version?"));
}

// Writes the size in the largest unit that divides it, such as "64 KiB".
std::string SizeText(uint64_t bytes) {
  constexpr uint64_t kKi = 1024;
  if (bytes >= kKi * kKi && bytes % (kKi * kKi) == 0) return absl::StrCat(bytes / (kKi * kKi), " MiB");
  if (bytes >= kKi && bytes % kKi == 0) return absl::StrCat(bytes / kKi, " KiB");
  return absl::StrCat(bytes, " B");
}

std::string WayText(const ordered_json& way) {
  const auto drivers = way.value("drivers", int64_t{0});
  return absl::StrCat(way.at("algorithm").get<std::string>(), " ", SizeText(way.at("chunk_bytes").get<uint64_t>()),
                      drivers > 0 ? absl::StrCat(" x", drivers) : "");
}

bool SameCell(const ordered_json& a, const ordered_json& b) {
  return a.at("operation") == b.at("operation") && a.at("values") == b.at("values") && a.at("bytes") == b.at("bytes");
}

std::vector<std::string> CellRow(const ordered_json& by_default, const ordered_json& fastest) {
  const double default_us = by_default.at("median_us").get<double>();
  const double fastest_us = fastest.at("median_us").get<double>();
  return {fastest.at("operation").get<std::string>(),    fastest.at("values").get<std::string>(),
          SizeText(fastest.at("bytes").get<uint64_t>()), WayText(by_default),
          absl::StrFormat("%.1f", default_us),           WayText(fastest),
          absl::StrFormat("%.1f", fastest_us),           absl::StrFormat("%.2fx", default_us / fastest_us)};
}

std::string MeasurementTable(const ordered_json& measurements) {
  std::vector<std::vector<std::string>> rows = {
      {"OPERATION", "VALUES", "SIZE", "DEFAULT", "US", "FASTEST", "US", "GAIN"}};
  for (size_t begin = 0, end = 0; begin < measurements.size(); begin = end) {
    const ordered_json* by_default = &measurements[begin];
    const ordered_json* fastest = by_default;
    for (; end < measurements.size() && SameCell(measurements[begin], measurements[end]); ++end) {
      const ordered_json& one = measurements[end];
      if (one.at("default").get<bool>()) by_default = &one;
      if (one.at("median_us").get<double>() < fastest->at("median_us").get<double>()) fastest = &one;
    }
    rows.push_back(CellRow(*by_default, *fastest));
  }
  return FormatTable(rows);
}

std::string Notes(const ordered_json& document) {
  const auto rules = document.at("rules").get<uint64_t>();
  const auto cells = document.at("cells").get<uint64_t>();
  const auto planned = document.at("cells_planned").get<uint64_t>();
  std::string notes = rules == 0 ? "no way is faster than the default by more than 5 %: the tuning has no rules\n"
                                 : absl::StrCat(rules, rules == 1 ? " rule" : " rules",
                                                ": where another way is faster than the default by more than 5 %\n");
  if (cells < planned) {
    absl::StrAppend(&notes, "time was up after ", cells, " of ", planned,
                    " lines; the default stays for the rest, or give more --seconds\n");
  }
  return notes;
}

// A two-level choice gets a second row with the algorithm that runs between the nodes. It also tells how many drivers a
// node has: the ranks that talk to other nodes.
std::vector<std::string> BetweenNodesRow(const ordered_json& choice) {
  const auto drivers = choice.at("drivers").get<int64_t>();
  const ordered_json& between = choice.at("between");
  return {"",
          "",
          "",
          "between nodes:",
          between.at("algorithm").get<std::string>(),
          SizeText(between.at("chunk_bytes").get<uint64_t>()),
          absl::StrCat(drivers, drivers == 1 ? " driver" : " drivers", " per node; ",
                       between.at("reason").get<std::string>())};
}

}  // namespace

absl::StatusOr<TuningReport> ReportTuning(absl::string_view printed) {
  // nlohmann reports errors by exceptions, which are caught here.
  try {
    TuningReport report;
    report.document = ordered_json::parse(printed.begin(), printed.end());
    report.tuning = report.document.at("tuning").get<std::string>();
    report.table = MeasurementTable(report.document.at("measurements"));
    report.notes = Notes(report.document);
    return report;
  } catch (const ordered_json::exception& error) {
    return Strange(error);
  }
}

absl::StatusOr<ExplanationReport> ReportExplanation(absl::string_view printed) {
  try {
    ExplanationReport report;
    report.document = ordered_json::parse(printed.begin(), printed.end());
    std::vector<std::vector<std::string>> rows = {
        {"OPERATION", "VALUES", "FROM", "TO", "ALGORITHM", "CHUNK", "REASON"}};
    for (const ordered_json& choice : report.document.at("choices")) {
      const bool has_end = choice.contains("bytes_to");
      std::string operation = choice.at("operation").get<std::string>();
      if (choice.contains("of")) operation += ", " + choice.at("of").get<std::string>();
      rows.push_back(
          {operation, choice.at("values").get<std::string>(), SizeText(choice.at("bytes_from").get<uint64_t>()),
           has_end ? SizeText(choice.at("bytes_to").get<uint64_t>()) : "any", choice.at("algorithm").get<std::string>(),
           SizeText(choice.at("chunk_bytes").get<uint64_t>()), choice.at("reason").get<std::string>()});
      if (choice.contains("between")) rows.push_back(BetweenNodesRow(choice));
    }
    report.table = FormatTable(rows);
    return report;
  } catch (const ordered_json::exception& error) {
    return Strange(error);
  }
}

}  // namespace hooke
