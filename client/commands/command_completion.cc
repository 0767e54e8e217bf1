#include "client/commands/command.h"
#include "client/commands/completion.h"

namespace hooke {

void AddCompletionCommand(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes hooke's command line in your shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->type_name("bash|zsh")
      ->check(CLI::IsMember({"bash", "zsh"}).description(""));
  command->footer("Now and here: source <(hooke completion bash)");
  command->callback([&app, &invocation, shell] {
    invocation.action = [&app, &invocation, shell] {
      *invocation.out << (*shell == "bash" ? BashCompletion(app) : ZshCompletion(app)) << std::flush;
      return static_cast<int>(kSucceeded);
    };
  });
}

}  // namespace hooke
