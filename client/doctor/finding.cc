#include "client/doctor/finding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kFault:
      return "fault";
  }
  return "?";
}

const char* LevelColour(Level level) {
  switch (level) {
    case Level::kOk:
      return "\x1b[32m";
    case Level::kWarning:
      return "\x1b[33m";
    case Level::kFault:
      return "\x1b[31m";
  }
  return "";
}

int64_t CountOf(const Findings& findings, Level level) {
  return std::count_if(findings.begin(), findings.end(), [level](const Finding& one) { return one.level == level; });
}

std::string Counted(int64_t count, const std::string& noun) {
  if (count == 0) return absl::StrCat("no ", noun);
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

Finding Ok(std::string check, std::string found, std::vector<std::string> advice) {
  return {std::move(check), Level::kOk, std::move(found), std::move(advice)};
}

Finding Warning(std::string check, std::string found, std::vector<std::string> advice) {
  return {std::move(check), Level::kWarning, std::move(found), std::move(advice)};
}

Finding Fault(std::string check, std::string found, std::vector<std::string> advice) {
  return {std::move(check), Level::kFault, std::move(found), std::move(advice)};
}

std::string FindingsText(const Findings& findings, bool colour) {
  int widest = 0;
  for (const Finding& one : findings) widest = std::max(widest, DisplayWidth(one.check));
  std::string text;
  for (const Finding& one : findings) {
    absl::StrAppendFormat(&text, "%s%-7s%s  %-*s  %s\n", colour ? LevelColour(one.level) : "", LevelName(one.level),
                          colour ? "\x1b[0m" : "", widest, one.check, Printable(one.found));
    for (const std::string& line : one.advice) {
      absl::StrAppendFormat(&text, "%*s-> %s\n", 7 + 2 + widest + 2, "", Printable(line));
    }
  }
  absl::StrAppend(&text, Counted(CountOf(findings, Level::kFault), "fault"), ", ",
                  Counted(CountOf(findings, Level::kWarning), "warning"), "\n");
  return text;
}

nlohmann::ordered_json FindingsToJson(const Findings& findings) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Finding& one : findings) {
    array.push_back(
        {{"check", one.check}, {"level", LevelName(one.level)}, {"found", one.found}, {"advice", one.advice}});
  }
  return {{"faults", CountOf(findings, Level::kFault)},
          {"warnings", CountOf(findings, Level::kWarning)},
          {"findings", array}};
}

bool AnyFault(const Findings& findings) { return CountOf(findings, Level::kFault) > 0; }

}  // namespace hooke
