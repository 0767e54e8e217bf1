// The `hooke` command.

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "client/commands/command.h"

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  // With SIGXFSZ ignored, a write beyond the file size limit fails, and the failure path leaves no file behind.
  std::signal(SIGXFSZ, SIG_IGN);
  hooke::Invocation invocation;
  invocation.in = &std::cin;
  invocation.in_terminal = isatty(STDIN_FILENO) == 1;
  invocation.out = &std::cout;
  invocation.err = &std::cerr;
  winsize size = {};
  invocation.terminal = isatty(STDOUT_FILENO) == 1 && Environment("TERM") != "dumb";
  if (invocation.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    invocation.width = size.ws_col;
    invocation.height = size.ws_row;
  }
  invocation.home = Environment("HOME");
  invocation.environment_coordinator = Environment("HOOKE_COORDINATOR");
  invocation.environment_token_file = Environment("HOOKE_TOKEN_FILE");
  std::error_code error;
  invocation.programs_dir = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return hooke::RunCommandLine(argc, argv, invocation);
}
