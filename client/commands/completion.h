#ifndef HOOKE_CLIENT_COMMANDS_COMPLETION_H_
#define HOOKE_CLIENT_COMMANDS_COMPLETION_H_

// Shell completion. The scripts are made from the description of the command line, so they are never out of date. Pure.

#include <string>

#include "flags/command_line.h"

namespace hooke {

// Returns a bash script that completes commands, flags, values from a fixed list, job ids (from `hooke jobs`), files
// and folders.
std::string BashCompletion(const CommandDescription& hooke);

// Returns a zsh script that completes the same words.
std::string ZshCompletion(const CommandDescription& hooke);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COMPLETION_H_
