#include "client/commands/completion.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

// Returns the flags of a command, like "-f --follow".
std::string FlagsOf(const CommandDescription& command) {
  std::vector<std::string> flags;
  for (const ArgumentDescription& argument : command.arguments) {
    flags.insert(flags.end(), argument.short_names.begin(), argument.short_names.end());
    flags.insert(flags.end(), argument.long_names.begin(), argument.long_names.end());
  }
  return absl::StrJoin(flags, " ");
}

// Returns the kinds of a command's positional arguments in order, like "JOB FILE". An argument with a list of allowed
// values gives the list, like "bash|zsh".
std::string KindsOf(const CommandDescription& command) {
  std::vector<std::string> kinds;
  for (const ArgumentDescription& argument : command.arguments) {
    if (argument.position_name.empty()) continue;
    kinds.push_back(argument.type.empty() ? argument.position_name : argument.type);
  }
  return absl::StrJoin(kinds, " ");
}

// Returns the cases of a shell's `case $command in`. There is one for each command for which `words_of` returns
// something.
template <typename WordsOf>
std::string Cases(const CommandDescription& hooke, absl::string_view variable, WordsOf words_of) {
  std::string cases;
  for (const CommandDescription& command : hooke.commands) {
    const std::string words = words_of(command);
    if (!words.empty()) absl::StrAppend(&cases, "    ", command.name, ") ", variable, "=\"", words, "\" ;;\n");
  }
  return cases;
}

constexpr char kBash[] =
    R"bash(# bash completion of hooke. Now: source <(hooke completion bash). For good: add that line to ~/.bashrc.
_hooke() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= coordinator= flags="@TOP_FLAGS@" kinds= kind= i n=0
  COMPREPLY=()
  case $previous in
@BASH_CHOICES@    @FOLDER_FLAGS@) COMPREPLY=($(compgen -d -- "$current")); return ;;
    @FILE_FLAGS@) COMPREPLY=($(compgen -f -- "$current")); return ;;
    @VALUE_FLAGS@) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --coordinator) coordinator=${COMP_WORDS[i+1]}; ((++i)) ;;
      @CHOICE_FLAGS@|@FOLDER_FLAGS@|@FILE_FLAGS@|@VALUE_FLAGS@) ((++i)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=${COMP_WORDS[i]}; else ((++n)); fi ;;
    esac
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W "@COMMANDS@ $flags" -- "$current"))
    return
  fi
  case $command in
@FLAG_CASES@  esac
  case $command in
@KIND_CASES@  esac
  kinds=($kinds)
  kind=${kinds[n]}
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ $kind == JOB ]]; then
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ${coordinator:+--coordinator "$coordinator"} jobs 2>/dev/null | sed -n '2,$s/^\([^ ]*-[0-9][0-9]*\) .*/\1/p')" -- "$current"))
  elif [[ $kind == WORKER ]]; then
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ${coordinator:+--coordinator "$coordinator"} nodes 2>/dev/null | sed -n '2,$s/^\([^ ]*\)  *worker  .*/\1/p')" -- "$current"))
  elif [[ $kind == FILE ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ -n $kind ]]; then
    COMPREPLY=($(compgen -W "${kind//|/ }" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  fi
}
complete -o filenames -F _hooke hooke
)bash";

constexpr char kZsh[] = R"zsh(#compdef hooke
# zsh completion of hooke. Now: source <(hooke completion zsh). For good: hooke completion zsh > a folder of $fpath, as _hooke.
_hooke() {
  local current=${words[CURRENT]} previous=${words[CURRENT-1]} command= flags="@TOP_FLAGS@" kinds= kind= i n=0
  local -a coordinator commands
  case $previous in
@ZSH_CHOICES@    @FOLDER_FLAGS@) _files -/; return ;;
    @FILE_FLAGS@) _files; return ;;
    @VALUE_FLAGS@) return ;;
  esac
  for ((i = 2; i < CURRENT; i++)); do
    case ${words[i]} in
      --coordinator) coordinator=(--coordinator ${words[i+1]}); ((++i)) ;;
      @CHOICE_FLAGS@|@FOLDER_FLAGS@|@FILE_FLAGS@|@VALUE_FLAGS@) ((++i)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=${words[i]}; else ((++n)); fi ;;
    esac
  done
  if [[ -z $command ]]; then
    commands=(
@DESCRIBED@    )
    _describe command commands
    [[ $current == -* ]] && compadd -- ${=flags}
    return
  fi
  case $command in
@FLAG_CASES@  esac
  case $command in
@KIND_CASES@  esac
  kind=${${=kinds}[n+1]}
  if [[ $current == -* ]]; then
    compadd -- ${=flags}
  elif [[ $kind == JOB ]]; then
    compadd -- ${(f)"$(${words[1]} $coordinator jobs 2>/dev/null | sed -n '2,$s/^\([^ ]*-[0-9][0-9]*\) .*/\1/p')"}
  elif [[ $kind == WORKER ]]; then
    compadd -- ${(f)"$(${words[1]} $coordinator nodes 2>/dev/null | sed -n '2,$s/^\([^ ]*\)  *worker  .*/\1/p')"}
  elif [[ $kind == FILE ]]; then
    _files
  elif [[ -n $kind ]]; then
    compadd -- ${(s:|:)kind}
  else
    compadd -- ${=flags}
  fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _hooke "$@"; else compdef _hooke hooke; fi
)zsh";

enum class ValueKind { kFolder, kFile, kChoice, kOther };

ValueKind ValueKindOf(const ArgumentDescription& argument) {
  if (argument.type == "DIR") return ValueKind::kFolder;
  if (argument.type == "FILE") return ValueKind::kFile;
  return absl::StrContains(argument.type, '|') ? ValueKind::kChoice : ValueKind::kOther;
}

// Returns all flags with values of this kind, and the values' type: "--output" has "table|json". A flag has the
// same kind of value in every command, so all commands share one map.
std::map<std::string, std::string> FlagsWith(const CommandDescription& hooke, ValueKind kind) {
  std::map<std::string, std::string> flags;
  for (const CommandDescription& command : hooke.commands) {
    for (const ArgumentDescription& argument : command.arguments) {
      if (!argument.position_name.empty() || !argument.takes_value || ValueKindOf(argument) != kind) continue;
      for (const std::string& name : argument.long_names) flags[name] = argument.type;
    }
  }
  return flags;
}

// Returns the flags with values of this kind as a shell pattern, like "--a|--b".
std::string ValueFlags(const CommandDescription& hooke, ValueKind kind) {
  return absl::StrJoin(FlagsWith(hooke, kind), "|",
                       [](std::string* out, const auto& flag) { absl::StrAppend(out, flag.first); });
}

// Returns one case for each flag whose values are known. The case has `before`, the values separated by spaces, and
// `after`.
std::string ChoiceCases(const CommandDescription& hooke, absl::string_view before, absl::string_view after) {
  std::string cases;
  for (const auto& [flag, type] : FlagsWith(hooke, ValueKind::kChoice)) {
    absl::StrAppend(&cases, "    ", flag, ") ", before, absl::StrReplaceAll(type, {{"|", " "}}), after,
                    "; return ;;\n");
  }
  return cases;
}

std::string Described(const CommandDescription& hooke) {
  std::string lines;
  for (const CommandDescription& command : hooke.commands) {
    const std::string help = absl::StrReplaceAll(command.help, {{"'", ""}, {":", "\\:"}, {"`", ""}});
    absl::StrAppend(&lines, "      '", command.name, ":", help, "'\n");
  }
  return lines;
}

std::string Fill(const char* script, const CommandDescription& hooke) {
  return absl::StrReplaceAll(
      script, {{"@TOP_FLAGS@", FlagsOf(hooke)},
               {"@COMMANDS@",
                absl::StrJoin(hooke.commands, " ",
                              [](std::string* out, const CommandDescription& command) { out->append(command.name); })},
               {"@BASH_CHOICES@", ChoiceCases(hooke, "COMPREPLY=($(compgen -W \"", "\" -- \"$current\"))")},
               {"@ZSH_CHOICES@", ChoiceCases(hooke, "compadd ", "")},
               {"@CHOICE_FLAGS@", ValueFlags(hooke, ValueKind::kChoice)},
               {"@FOLDER_FLAGS@", ValueFlags(hooke, ValueKind::kFolder)},
               {"@FILE_FLAGS@", ValueFlags(hooke, ValueKind::kFile)},
               {"@VALUE_FLAGS@", ValueFlags(hooke, ValueKind::kOther)},
               {"@DESCRIBED@", Described(hooke)},
               {"@FLAG_CASES@", Cases(hooke, "flags", FlagsOf)},
               {"@KIND_CASES@", Cases(hooke, "kinds", KindsOf)}});
}

}  // namespace

std::string BashCompletion(const CommandDescription& hooke) { return Fill(kBash, hooke); }

std::string ZshCompletion(const CommandDescription& hooke) { return Fill(kZsh, hooke); }

}  // namespace hooke
