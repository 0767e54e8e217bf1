#ifndef HOOKE_CLIENT_DOCTOR_FINDING_H_
#define HOOKE_CLIENT_DOCTOR_FINDING_H_

// A finding of `hooke doctor`: what one check has found, and what to do about it. The functions here are pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hooke {

enum class Level {
  kOk,
  kWarning,  // Hooke works, but slower, or not in every case.
  kFault,    // Some use of Hooke fails here.
};

struct Finding {
  std::string check;  // A short name: "host name".
  Level level = Level::kOk;
  std::string found;                // One line.
  std::vector<std::string> advice;  // What to do, a line each. Never empty for a warning or a fault.
};

using Findings = std::vector<Finding>;

// Returns findings of each level. `check` is a name, and `found` what the check has seen.
Finding Ok(std::string check, std::string found, std::vector<std::string> advice = {});
Finding Warning(std::string check, std::string found, std::vector<std::string> advice);
Finding Fault(std::string check, std::string found, std::vector<std::string> advice);

// Returns the findings for people: a line for each, with its advice below, and a last line that counts faults and
// warnings. With `colour`, escape sequences colour the levels. Text from other programs is made printable.
std::string FindingsText(const Findings& findings, bool colour);

// Returns {"faults": 1, "warnings": 0, "findings": [{"check", "level", "found", "advice"}]}.
nlohmann::ordered_json FindingsToJson(const Findings& findings);

bool AnyFault(const Findings& findings);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_FINDING_H_
