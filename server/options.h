#ifndef HOOKE_SERVER_OPTIONS_H_
#define HOOKE_SERVER_OPTIONS_H_

// The command line of hooke-server.

#include <optional>
#include <string>

#include "server/daemon.h"

namespace hooke {

struct ServerCommandLine {
  ServerOptions server;    // All but its token, logger and on_saved.
  std::string token_file;  // ServerOptions.token is read from it; empty: no token.
  // Gets "HOST:PORT\n" once the server serves, "metrics HOST:PORT\n" if there are metrics, and "dashboard HOST:PORT\n"
  // if there is a web page; empty: no file.
  std::string ready_file;
  std::string log_level = "info";
};

// The result of parsing: run the server, or exit with a status after printing `text`.
struct ParsedCommandLine {
  std::optional<ServerCommandLine> run;
  int exit_status = 0;  // 0: help or version, to standard output; 2: a mistake, to standard error.
  std::string text;
};

// `home`: the user's home folder, for the default of --state-dir; may be empty.
ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const std::string& home);

// All options on one line, for the log.
std::string Describe(const ServerCommandLine& options);

}  // namespace hooke

#endif  // HOOKE_SERVER_OPTIONS_H_
