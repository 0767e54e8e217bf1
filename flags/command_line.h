#ifndef HOOKE_FLAGS_COMMAND_LINE_H_
#define HOOKE_FLAGS_COMMAND_LINE_H_

// A command line as values. A program declares its arguments; Parse reads argv and returns what to do next. Only
// Parsed::Print prints, and nothing here exits. A Command is for one thread.
//
//   std::string listen = "127.0.0.1:0";
//   Command command("hooke-server", "Holds the parameters that groups share.");
//   command.Add("--listen", listen, "Address to serve at").Type("HOST:PORT");
//   const Parsed parsed = command.Parse(argc, argv);
//   if (!parsed.ok()) return parsed.Print();
//
// CLI11 does the parsing. Its headers take seconds to compile, so only command_line.cc includes them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hooke {

// The result of parsing. If ok() is false, either `help` or `error` is set, and the program's variables are
// unspecified.
struct Parsed {
  std::string help;   // The text that --help or --version prints.
  std::string error;  // The mistake, without an end of line: "--ranks: Value 0 not in range 1 to 1024".
  // The chosen subcommand and its action. After an error the name may be set, too.
  std::string command;
  std::function<int()> action;

  bool ok() const { return help.empty() && error.empty(); }
  int exit_code() const { return error.empty() ? 0 : 2; }
  // Returns `help`, or `error` and how to get help, in complete lines.
  std::string Text() const;
  // Prints Text() on the standard output or, if it is an error, on the standard error. Returns exit_code().
  int Print() const;
};

// One argument of a Command, which owns it.
class Argument {
 public:
  // Sets a check that returns the fault of a value's text, or "" if there is none. The error is then "--flag: FAULT".
  using CheckText = std::function<std::string(const std::string& text)>;

  Argument& Required();
  Argument& Check(CheckText check);
  // Refuses an empty text, which may come from a variable that is not set.
  Argument& NotEmpty();
  // Sets the limits of a number, which are themselves allowed. They have the value's type.
  Argument& Range(int least, int most);
  Argument& Range(uint64_t least, uint64_t most);
  Argument& Range(double least, double most);
  Argument& OneOf(const std::vector<std::string>& allowed);
  Argument& Needs(const Argument& other);
  Argument& Excludes(const Argument& other);
  // Sets the type that --help shows. It replaces the C++ type and the allowed values of Range and OneOf, so call it
  // after those.
  Argument& Type(const std::string& name);
  // Hides the default of this argument in --help, although the command shows those of other arguments.
  Argument& HideDefault();

 private:
  friend class Command;
  explicit Argument(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

// A Command as plain values, for shell completion.
struct ArgumentDescription {
  std::vector<std::string> short_names;  // "-f".
  std::vector<std::string> long_names;   // "--follow".
  std::string position_name;             // "JOB"; empty: a flag.
  std::string type;                      // As --help shows it: "FILE", "table|json". May be empty.
  bool takes_value = true;
  std::string help;
};
struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<ArgumentDescription> arguments;  // Includes --help.
  std::vector<CommandDescription> commands;
};

// A program, or a subcommand of one.
class Command {
 public:
  Command(const std::string& name, const std::string& help);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Adds an argument, which Parse writes into `value`. `value` holds the default and must outlive Parse. `name` is
  // "--follow" or "-f,--follow", or "JOB" for an argument that is known by its position. Value is bool for a flag
  // without a value. Otherwise it is int, uint32_t, uint64_t, double, std::string or absl::Duration, which is written
  // like 1m30s. A flag that takes several values has a std::vector of std::string or uint64_t.
  template <typename Value>
  Argument Add(const std::string& name, Value& value, const std::string& help);

  // Adds a subcommand, owned by this command. If a command has subcommands, the command line must give exactly one.
  Command& AddCommand(const std::string& name, const std::string& help);
  // Sets the action of this subcommand, which Parse returns as Parsed::action.
  void Action(std::function<int()> action) { action_ = std::move(action); }

  // Adds --version, which prints `text`.
  void Version(const std::string& text);
  // Sets the help text of --help itself, here and for subcommands that are added later.
  void HelpOfHelp(const std::string& help);
  // Sets the last lines of --help.
  void Footer(const std::string& text);
  // Lets --help show the defaults of arguments that are added later, to this command and to subcommands that are added
  // later.
  void ShowDefaults();

  Parsed Parse(int argc, const char* const* argv);
  // Call it after Parse. Returns whether an argument, "--follow" or "JOB", was on the command line.
  bool Given(const std::string& name) const;

  std::string HelpText() const;
  CommandDescription Describe() const;

 private:
  explicit Command(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

  const std::shared_ptr<CLI::App> app_;
  std::function<int()> action_;
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace hooke

#endif  // HOOKE_FLAGS_COMMAND_LINE_H_
