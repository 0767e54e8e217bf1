// hooke-server: reads its flags, serves until SIGTERM or SIGINT, writes the last snapshots, ends.
// Exit status: 0 stopped by a signal, 1 failed, 2 usage.

#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <cstdio>
#include <memory>
#include <string>

#include "files/whole_file.h"
#include "server/daemon.h"
#include "server/options.h"

namespace {

// gRPC's own lines are for whoever debugs gRPC; what goes wrong, our calls say.
void LogGrpc(gpr_log_func_args* line) { spdlog::debug("grpc: {}", line->message); }

int Fail(const absl::Status& status) {
  spdlog::error("{}", std::string(status.message()));
  return 1;
}

int Run(hooke::ServerCommandLine options) {
  // Before there are threads: all of them inherit it, and only the wait below takes these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_color_mt("hooke-server");
  logger->set_level(spdlog::level::from_str(options.log_level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  gpr_set_log_function(LogGrpc);
  logger->info("hooke-server {} starts: {}", options.server.version, hooke::Describe(options));

  // Whoever waits for it must not see that of an earlier run.
  if (!options.ready_file.empty()) std::remove(options.ready_file.c_str());
  options.server.logger = logger;
  absl::StatusOr<std::unique_ptr<hooke::ServerDaemon>> daemon = hooke::ServerDaemon::Start(options.server);
  if (!daemon.ok()) return Fail(daemon.status());
  logger->info("serving at {}", (*daemon)->address());
  if (!options.ready_file.empty()) {
    const absl::Status written = hooke::WriteWholeFile(options.ready_file, (*daemon)->address() + "\n");
    if (!written.ok()) return Fail(written);
  }
  int number = 0;
  sigwait(&signals, &number);
  logger->info("stopping on {}", number == SIGTERM ? "SIGTERM" : "SIGINT");
  const absl::Status stopped = (*daemon)->Stop();
  if (!stopped.ok()) return Fail(stopped);
  logger->info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* home = getenv("HOME");
  hooke::ParsedCommandLine parsed = hooke::ParseCommandLine(argc, argv, home == nullptr ? "" : home);
  if (parsed.run.has_value()) return Run(*std::move(parsed.run));
  std::fputs(parsed.text.c_str(), parsed.exit_status == 0 ? stdout : stderr);
  return parsed.exit_status;
}
