#include "worker/launch/agent_call.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "worker/launch/launch_command.h"

namespace hooke {
namespace {

// Splits a shell's command line into words. Knows quotes and backslashes, and nothing else of a shell.
std::vector<std::string> ShellWords(absl::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back().push_back(line[++i]);
    } else {
      words.back().push_back(c);
    }
  }
  return words;
}

}  // namespace

std::optional<AgentCall> ParseAgentCall(const std::vector<std::string>& arguments) {
  size_t host = 0;
  // Skips options such as MPICH's "-x".
  while (host < arguments.size() && absl::StartsWith(arguments[host], "-")) ++host;
  if (host + 1 >= arguments.size()) return std::nullopt;
  AgentCall call;
  call.host = arguments[host];
  const std::vector<std::string> words =
      ShellWords(absl::StrJoin(arguments.begin() + static_cast<std::ptrdiff_t>(host) + 1, arguments.end(), " "));
  // Open MPI's command may set PATH and LD_LIBRARY_PATH before it starts the daemon. These words are skipped, because
  // the other node has its own values.
  const auto daemon = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    const absl::string_view name = FileName(word);
    return name == NodeDaemonName(MpiFlavour::kOpenMpi) || name == NodeDaemonName(MpiFlavour::kMpich) ||
           name == NodeDaemonName(MpiFlavour::kIntelMpi);
  });
  if (daemon == words.end()) return std::nullopt;
  call.arguments.assign(daemon + 1, words.end());
  return call;
}

}  // namespace hooke
