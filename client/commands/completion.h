#ifndef HOOKE_CLIENT_COMMANDS_COMPLETION_H_
#define HOOKE_CLIENT_COMMANDS_COMPLETION_H_

// Shell completion, made from the command line's own description so that it never lags behind. Pure.

#include <CLI/CLI.hpp>
#include <string>

namespace hooke {

// A bash script: completes commands, flags, values of --output, job ids (from `hooke jobs`) and files.
std::string BashCompletion(const CLI::App& app);

// The same for zsh.
std::string ZshCompletion(const CLI::App& app);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMPLETION_H_
