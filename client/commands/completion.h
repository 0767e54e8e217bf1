#ifndef HOOKE_CLIENT_COMMANDS_COMPLETION_H_
#define HOOKE_CLIENT_COMMANDS_COMPLETION_H_

// Shell completion. It is made from the command line's own description, so it is never out of date. Pure.

#include <string>

#include "flags/command_line.h"

namespace hooke {

// A bash script that completes commands, flags, values of --output, job ids (from `hooke jobs`) and files.
std::string BashCompletion(const CommandDescription& hooke);

// The same for zsh.
std::string ZshCompletion(const CommandDescription& hooke);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMPLETION_H_
