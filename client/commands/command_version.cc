#include "client/commands/command.h"
#include "client/text/listing.h"

namespace hooke {

void AddVersionCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("version", "Print the version of this program");
  AddOutputFlag(command, invocation);
  command.Action([&invocation] {
    if (invocation.json()) {
      *invocation.out << DumpJson({{"version", HOOKE_VERSION}}) << std::endl;
    } else {
      *invocation.out << "hooke " << HOOKE_VERSION << std::endl;
    }
    return kSucceeded;
  });
}

}  // namespace hooke
