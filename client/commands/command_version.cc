#include "client/commands/command.h"
#include "client/text/listing.h"

namespace hooke {

void AddVersionCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("version", "Print the version of this program");
  AddOutputFlag(*command, invocation);
  command->callback([&invocation] {
    invocation.action = [&invocation] {
      if (invocation.json()) {
        *invocation.out << DumpJson({{"version", HOOKE_VERSION}}) << std::endl;
      } else {
        *invocation.out << "hooke " << HOOKE_VERSION << std::endl;
      }
      return static_cast<int>(kSucceeded);
    };
  });
}

}  // namespace hooke
