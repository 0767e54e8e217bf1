// hooke-server: reads its flags, serves until SIGTERM or SIGINT, writes the last snapshots, and ends. Exit status: 0
// after a stop by a signal, --help or --version; 1 after a failure; 2 after a mistake in the flags.

#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "files/whole_file.h"
#include "server/daemon.h"
#include "server/options.h"
#include "wire/cluster_token.h"

namespace {

// gRPC's own lines help only to debug gRPC. Our calls report what goes wrong.
void LogGrpc(gpr_log_func_args* line) { spdlog::debug("grpc: {}", line->message); }

// Time to end after the last snapshots. gRPC waits five seconds for open calls. But it waits forever for threads of its
// own that it could not start, for example because the process may have no more.
constexpr unsigned kEndSeconds = 8;

// The exit status after the alarm.
volatile sig_atomic_t alarm_status = 0;

extern "C" void EndNow(int) {
  constexpr char kText[] = "hooke-server: gRPC did not end in time and is left behind\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(alarm_status);
}

// Connections and snapshots need files. The default of most systems, 1024, is soon used up.
void RaiseFileLimit(spdlog::logger& logger) {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t before = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  if (before < files.rlim_max && setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
  logger.info("may open {} files at a time", files.rlim_cur);
}

int Fail(const absl::Status& status) {
  spdlog::error("{}", std::string(status.message()));
  return 1;
}

int Run(hooke::ServerCommandLine options) {
  // Block the signals before there are threads, which inherit this. Only the wait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  // The jobs' keys and centers are in the server's files. Nobody but its user reads them.
  umask(077);

  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_color_mt("hooke-server");
  logger->set_level(spdlog::level::from_str(options.log_level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  gpr_set_log_function(LogGrpc);
  logger->info("hooke-server {} starts: {}", options.server.version, hooke::Describe(options));

  RaiseFileLimit(*logger);
  signal(SIGALRM, EndNow);
  options.server.on_saved = [](bool saved) {
    alarm_status = saved ? 0 : 1;
    alarm(kEndSeconds);
  };

  if (const char* file = getenv("HOOKE_TOKEN_FILE"); options.token_file.empty() && file != nullptr) {
    options.token_file = file;
  }
  absl::StatusOr<hooke::ClusterToken> token = hooke::ReadClusterToken(options.token_file);
  if (!token.ok()) return Fail(token.status());
  options.server.token = *std::move(token);

  // Whoever waits for the file must not see that of an earlier run.
  if (!options.ready_file.empty()) std::remove(options.ready_file.c_str());
  options.server.logger = logger;
  absl::StatusOr<std::unique_ptr<hooke::ServerDaemon>> daemon = hooke::ServerDaemon::Start(options.server);
  if (!daemon.ok()) return Fail(daemon.status());
  logger->info("serving at {}", (*daemon)->address());
  const std::string metrics = (*daemon)->metrics_address();
  if (!metrics.empty()) logger->info("metrics at http://{}/metrics", metrics);
  const std::string dashboard = (*daemon)->dashboard_address();
  if (!dashboard.empty()) logger->info("dashboard at http://{}/", dashboard);
  if (!options.ready_file.empty()) {
    std::string ready = (*daemon)->address() + "\n";
    if (!metrics.empty()) ready += "metrics " + metrics + "\n";
    if (!dashboard.empty()) ready += "dashboard " + dashboard + "\n";
    const absl::Status written = hooke::WriteWholeFile(options.ready_file, ready);
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
  // Debian builds Abseil with the deadlock detector of its mutexes, which keeps a graph of all of them under one lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const char* home = getenv("HOME");
  hooke::ParsedCommandLine parsed = hooke::ParseCommandLine(argc, argv, home == nullptr ? "" : home);
  if (parsed.run.has_value()) return Run(*std::move(parsed.run));
  std::fputs(parsed.text.c_str(), parsed.exit_status == 0 ? stdout : stderr);
  return parsed.exit_status;
}
