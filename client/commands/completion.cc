#include "client/commands/completion.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

struct Words {
  std::string command;
  std::string description;
  std::vector<std::string> flags;
  std::vector<std::string> positionals;  // Names such as "JOB" or "FILE", or the allowed values: "bash|zsh".
};

Words WordsOf(const CLI::App& app) {
  Words words;
  words.command = app.get_name();
  words.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) words.flags.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) words.flags.push_back("--" + name);
    if (option->get_positional())
      words.positionals.push_back(option->get_type_name().empty() ? option->get_name(true) : option->get_type_name());
  }
  return words;
}

std::vector<Words> CommandsOf(const CLI::App& app) {
  std::vector<Words> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(WordsOf(*command));
  return commands;
}

// The cases of a shell's `case $command in`: one for each command for which `text` returns something.
template <typename Text>
std::string Cases(const std::vector<Words>& commands, Text text) {
  std::string cases;
  for (const Words& words : commands) {
    const std::string line = text(words);
    if (!line.empty()) absl::StrAppend(&cases, "    ", words.command, ") ", line, " ;;\n");
  }
  return cases;
}

std::string FlagCases(const std::vector<Words>& commands) {
  return Cases(commands,
               [](const Words& words) { return absl::StrCat("flags=\"", absl::StrJoin(words.flags, " "), "\""); });
}

// A command's positional arguments, like "JOB FILE", as a shell variable.
std::string KindCases(const std::vector<Words>& commands) {
  return Cases(commands, [](const Words& words) {
    return words.positionals.empty() ? "" : absl::StrCat("kinds=\"", absl::StrJoin(words.positionals, " "), "\"");
  });
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

ValueKind ValueKindOf(const CLI::Option& option) {
  if (option.get_type_name() == "DIR") return ValueKind::kFolder;
  if (option.get_type_name() == "FILE") return ValueKind::kFile;
  return option.get_type_name().find('|') == std::string::npos ? ValueKind::kOther : ValueKind::kChoice;
}

// All flags with that kind of value, and their types: "--output" has "table|json". A flag means the same in every
// command, so they share one map.
std::map<std::string, std::string> FlagsWith(const CLI::App& app, ValueKind kind) {
  std::map<std::string, std::string> flags;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      const bool has_value = !option->get_positional() && option->get_items_expected_max() > 0;
      if (!has_value || ValueKindOf(*option) != kind) continue;
      for (const std::string& name : option->get_lnames()) flags["--" + name] = option->get_type_name();
    }
  }
  return flags;
}

// The flags with that kind of value as a shell pattern: "--a|--b".
std::string ValueFlags(const CLI::App& app, ValueKind kind) {
  return absl::StrJoin(FlagsWith(app, kind), "|",
                       [](std::string* out, const auto& flag) { absl::StrAppend(out, flag.first); });
}

// One case for each flag whose values are known: `before`, the values separated by spaces, `after`.
std::string ChoiceCases(const CLI::App& app, absl::string_view before, absl::string_view after) {
  std::string cases;
  for (const auto& [flag, type] : FlagsWith(app, ValueKind::kChoice)) {
    absl::StrAppend(&cases, "    ", flag, ") ", before, absl::StrReplaceAll(type, {{"|", " "}}), after,
                    "; return ;;\n");
  }
  return cases;
}

std::string Described(const std::vector<Words>& commands) {
  std::string lines;
  for (const Words& words : commands) {
    const std::string description = absl::StrReplaceAll(words.description, {{"'", ""}, {":", "\\:"}, {"`", ""}});
    absl::StrAppend(&lines, "      '", words.command, ":", description, "'\n");
  }
  return lines;
}

std::string Fill(const char* script, const CLI::App& app) {
  const std::vector<Words> commands = CommandsOf(app);
  return absl::StrReplaceAll(
      script, {{"@TOP_FLAGS@", absl::StrJoin(WordsOf(app).flags, " ")},
               {"@COMMANDS@",
                absl::StrJoin(commands, " ", [](std::string* out, const Words& words) { out->append(words.command); })},
               {"@BASH_CHOICES@", ChoiceCases(app, "COMPREPLY=($(compgen -W \"", "\" -- \"$current\"))")},
               {"@ZSH_CHOICES@", ChoiceCases(app, "compadd ", "")},
               {"@CHOICE_FLAGS@", ValueFlags(app, ValueKind::kChoice)},
               {"@FOLDER_FLAGS@", ValueFlags(app, ValueKind::kFolder)},
               {"@FILE_FLAGS@", ValueFlags(app, ValueKind::kFile)},
               {"@VALUE_FLAGS@", ValueFlags(app, ValueKind::kOther)},
               {"@DESCRIBED@", Described(commands)},
               {"@FLAG_CASES@", FlagCases(commands)},
               {"@KIND_CASES@", KindCases(commands)}});
}

}  // namespace

std::string BashCompletion(const CLI::App& app) { return Fill(kBash, app); }

std::string ZshCompletion(const CLI::App& app) { return Fill(kZsh, app); }

}  // namespace hooke
