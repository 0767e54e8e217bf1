#ifndef HOOKE_CLIENT_COMMANDS_COMPLETION_H_
#define HOOKE_CLIENT_COMMANDS_COMPLETION_H_

// Shell completion. It is made from the command line's own description, so it is never out of date. Pure.

#include <CLI/CLI.hpp>
#include <string>

namespace hooke {

// A bash script that completes commands, flags, values of --output, job ids (from `hooke jobs`) and files.
std::string BashCompletion(const CLI::App& app);

// The same for zsh.
std::string ZshCompletion(const CLI::App& app);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMPLETION_H_
