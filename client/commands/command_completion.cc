#include "client/commands/command.h"
#include "client/commands/completion.h"

namespace hooke {

void AddCompletionCommand(Command& program, Invocation& invocation) {
  Command& command =
      program.AddCommand("completion", "Print a script that completes hooke's command line in your shell");
  auto shell = std::make_shared<std::string>();
  command.Add("SHELL", *shell, "bash or zsh").Required().OneOf({"bash", "zsh"}).Type("bash|zsh");
  command.Footer("Now and here: source <(hooke completion bash)");
  command.Action([&program, &invocation, shell] {
    const CommandDescription hooke = program.Describe();
    *invocation.out << (*shell == "bash" ? BashCompletion(hooke) : ZshCompletion(hooke)) << std::flush;
    return kSucceeded;
  });
}

}  // namespace hooke
