#include "flags/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

// Adds a check, and moves its description into the option's type name. So the help text shows both as one word, and
// Argument::Type replaces both.
void AddCheck(CLI::Option& option, CLI::Validator check) {
  option.type_name(absl::StrCat(option.get_type_name(), ":", check.get_description()));
  option.check(check.description(""));
}

CLI::Option* AddDuration(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help) {
  const auto parse = [&value](const CLI::results_t& texts) { return absl::ParseDuration(texts.front(), &value); };
  const auto format = [&value] { return absl::FormatDuration(value); };
  return app.add_option(name, parse, help, /*defaulted=*/false, format)->type_name("DURATION");
}

ArgumentDescription DescribeOption(const CLI::Option& option) {
  ArgumentDescription argument;
  for (const std::string& name : option.get_snames()) argument.short_names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.long_names.push_back("--" + name);
  if (option.get_positional()) argument.position_name = option.get_name(/*positional=*/true);
  argument.type = option.get_type_name();
  argument.takes_value = option.get_items_expected_max() > 0;
  argument.help = option.get_description();
  return argument;
}

CommandDescription DescribeApp(const CLI::App& app) {
  CommandDescription command;
  command.name = app.get_name();
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) command.arguments.push_back(DescribeOption(*option));
  // Without a condition CLI11 would return only the subcommands that were chosen on the command line.
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    command.commands.push_back(DescribeApp(*subcommand));
  return command;
}

}  // namespace

std::string Parsed::Text() const {
  return error.empty() ? help : absl::StrCat(error, "\nRun with --help for more information.\n");
}

int Parsed::Print() const {
  (error.empty() ? std::cout : std::cerr) << Text() << std::flush;
  return exit_code();
}

Argument& Argument::Required() {
  option_->required();
  return *this;
}

Argument& Argument::Check(CheckText check) {
  option_->check(std::move(check));
  return *this;
}

Argument& Argument::NotEmpty() {
  return Check([](const std::string& text) { return std::string(text.empty() ? "is empty; leave it out" : ""); });
}

Argument& Argument::Range(int least, int most) {
  AddCheck(*option_, CLI::Range(least, most));
  return *this;
}

Argument& Argument::Range(uint64_t least, uint64_t most) {
  AddCheck(*option_, CLI::Range(least, most));
  return *this;
}

Argument& Argument::Range(double least, double most) {
  AddCheck(*option_, CLI::Range(least, most));
  return *this;
}

Argument& Argument::OneOf(const std::vector<std::string>& allowed) {
  AddCheck(*option_, CLI::IsMember(allowed));
  return *this;
}

Argument& Argument::Needs(const Argument& other) {
  option_->needs(other.option_);
  return *this;
}

Argument& Argument::Excludes(const Argument& other) {
  option_->excludes(other.option_);
  return *this;
}

Argument& Argument::Type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Argument& Argument::HideDefault() {
  option_->default_str("");
  return *this;
}

Command::Command(const std::string& name, const std::string& help) : app_(std::make_shared<CLI::App>(help, name)) {}

template <typename Value>
Argument Command::Add(const std::string& name, Value& value, const std::string& help) {
  if constexpr (std::is_same_v<Value, bool>) {
    return Argument(app_->add_flag(name, value, help));
  } else if constexpr (std::is_same_v<Value, absl::Duration>) {
    return Argument(AddDuration(*app_, name, value, help));
  } else {
    return Argument(app_->add_option(name, value, help));
  }
}

template Argument Command::Add(const std::string&, bool&, const std::string&);
template Argument Command::Add(const std::string&, int&, const std::string&);
template Argument Command::Add(const std::string&, uint32_t&, const std::string&);
template Argument Command::Add(const std::string&, uint64_t&, const std::string&);
template Argument Command::Add(const std::string&, double&, const std::string&);
template Argument Command::Add(const std::string&, std::string&, const std::string&);
template Argument Command::Add(const std::string&, absl::Duration&, const std::string&);
template Argument Command::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Argument Command::Add(const std::string&, std::vector<uint64_t>&, const std::string&);

Command& Command::AddCommand(const std::string& name, const std::string& help) {
  CLI::App* app = app_->add_subcommand(name, help);
  app_->require_subcommand(1);
  commands_.push_back(std::unique_ptr<Command>(new Command(app_->get_subcommand_ptr(app))));
  return *commands_.back();
}

void Command::Version(const std::string& text) { app_->set_version_flag("--version", text); }

void Command::HelpOfHelp(const std::string& help) { app_->set_help_flag("-h,--help", help); }

void Command::Footer(const std::string& text) { app_->footer(text); }

void Command::ShowDefaults() { app_->option_defaults()->always_capture_default(); }

Parsed Command::Parse(int argc, const char* const* argv) {
  Parsed parsed;
  // CLI11 reports errors by exceptions; we catch them here.
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& asked) {
    std::ostringstream out;
    app_->exit(asked, out, out);
    parsed.help = out.str();
  } catch (const CLI::ExtrasError& error) {
    // If there are several extra arguments, CLI11 lists them in reverse order.
    const std::vector<std::string> words = app_->remaining(/*recurse=*/true);
    parsed.error = words.size() < 2
                       ? error.what()
                       : absl::StrCat("The following arguments were not expected: ", absl::StrJoin(words, " "));
  } catch (const CLI::ParseError& error) {
    parsed.error = error.what();
  }
  for (const std::unique_ptr<Command>& command : commands_) {
    if (!command->app_->parsed()) continue;
    parsed.command = command->app_->get_name();
    parsed.action = command->action_;
  }
  return parsed;
}

bool Command::Given(const std::string& name) const { return app_->count(name) > 0; }

std::string Command::HelpText() const { return app_->help(); }

CommandDescription Command::Describe() const { return DescribeApp(*app_); }

}  // namespace hooke
