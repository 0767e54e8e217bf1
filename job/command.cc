#include "job/command.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "job/utf8.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

constexpr size_t kNameBytesMax = 128;

struct TakenPrefix {
  absl::string_view prefix;
  absl::string_view owner;  // The launcher or library that sets such variables.
};

// A rank reads these variables to find its group. A job that sets them would send its ranks astray.
constexpr TakenPrefix kTakenPrefixes[] = {
    {"HOOKE_", "Hooke"}, {"OMPI_", "Open MPI"}, {"ORTE_", "Open MPI"}, {"PRTE_", "Open MPI"}, {"PMIX_", "Open MPI"},
    {"PMI", "MPICH"},    {"MPIR_", "MPICH"},    {"HYDRA_", "MPICH"},   {"HYDI_", "MPICH"},    {"SLURM_", "Slurm"},
};

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Returns why the text cannot be passed to a program, or "".
std::string FaultOf(absl::string_view text) {
  if (absl::StrContains(text, '\0')) return "has a NUL byte";
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (!character.valid) return "is not UTF-8";
    text.remove_prefix(character.bytes);
  }
  return "";
}

absl::Status CheckSize(absl::Span<const std::string> texts, size_t count_max, absl::string_view things) {
  if (texts.size() > count_max) return Wrong(absl::StrCat("has ", texts.size(), " ", things));
  size_t bytes = texts.size();
  for (const std::string& text : texts) bytes += text.size();
  return bytes <= kCommandBytesMax ? absl::OkStatus() : Wrong(absl::StrCat("has ", bytes, " bytes"));
}

bool IsVariableName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && !absl::ascii_isdigit(name.front()) &&
         absl::c_all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status CheckVariable(absl::string_view name, absl::string_view value) {
  if (!IsVariableName(name)) {
    return Wrong(absl::StrCat(Quoted(name), " is not a variable's name, which has 1 to ", kNameBytesMax,
                              " letters, digits and _, the first no digit"));
  }
  for (const TakenPrefix& taken : kTakenPrefixes) {
    if (!absl::StartsWith(name, taken.prefix)) continue;
    return Wrong(absl::StrCat(name, " is refused: ", taken.owner, " sets the variables ", taken.prefix,
                              "* for each rank, which finds its group by them; choose another name"));
  }
  if (name == "TMPDIR") {
    return Wrong("TMPDIR is refused: mpirun keeps the group's own files there; choose another name");
  }
  const std::string fault = FaultOf(value);
  return fault.empty() ? absl::OkStatus() : Wrong(absl::StrCat("the value of ", name, " ", fault));
}

// Returns the argument as a shell takes it. Python's shlex leaves the same characters bare.
std::string ShellText(const std::string& argument) {
  const bool bare = !argument.empty() && absl::c_all_of(argument, [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("@%+=:,./-_", c);
  });
  return bare ? argument : absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
}

}  // namespace

bool HasCommand(const v1::JobSpec& job) { return job.command().arguments_size() > 0; }

absl::Status CheckArguments(absl::Span<const std::string> arguments) {
  if (arguments.empty() || arguments[0].empty()) return Wrong("names no program");
  if (absl::Status status = CheckSize(arguments, kArgumentsMax, "arguments"); !status.ok()) return status;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string fault = FaultOf(arguments[i]);
    if (!fault.empty()) return Wrong(absl::StrCat(i == 0 ? "the program" : absl::StrCat("argument ", i), " ", fault));
  }
  return absl::OkStatus();
}

absl::Status CheckVariables(absl::Span<const std::string> variables) {
  if (absl::Status status = CheckSize(variables, kVariablesMax, "variables"); !status.ok()) return status;
  for (const absl::string_view variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == variable.npos) return Wrong(absl::StrCat(Quoted(variable), " has no value"));
    absl::Status status = CheckVariable(variable.substr(0, equals), variable.substr(equals + 1));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string CommandText(absl::Span<const std::string> arguments, size_t bytes_max) {
  std::vector<std::string> texts;
  for (const std::string& argument : arguments) texts.push_back(ShellText(argument));
  const std::string line = Escaped(absl::StrJoin(texts, " "));
  absl::string_view rest = line;
  while (!rest.empty() && line.size() - rest.size() + FirstCharacter(rest).bytes <= bytes_max) {
    rest.remove_prefix(FirstCharacter(rest).bytes);
  }
  return rest.empty() ? line : absl::StrCat(line.substr(0, line.size() - rest.size()), "...");
}

std::string TrainedText(const v1::JobSpec& job) {
  if (!HasCommand(job)) return job.model().name();
  return CommandText(std::vector<std::string>(job.command().arguments().begin(), job.command().arguments().end()));
}

}  // namespace hooke
