#include "server/options.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

struct DurationRange {
  absl::Duration least = absl::Nanoseconds(1);
  absl::Duration most = absl::Hours(24 * 365);
  std::string allowed = "one like 30s, more than 0, up to 8760h";
};

// A flag that takes a duration: "30s", "1m30s".
void AddDuration(CLI::App& app, const std::string& flag, absl::Duration& value, const std::string& help,
                 const DurationRange& range = {}) {
  const auto parse = [&value, range](const std::string& text) {
    return absl::ParseDuration(text, &value) && value >= range.least && value <= range.most;
  };
  CLI::Option* option = app.add_option_function<std::string>(
      flag, [](const std::string&) {}, help);
  option->check([parse, range](const std::string& text) {
    if (parse(text)) return std::string();
    absl::Duration any;
    const char* wrong = absl::ParseDuration(text, &any) ? "is out of range" : "is no duration";
    return absl::StrCat("\"", text, "\" ", wrong, ", allowed is ", range.allowed);
  });
  option->type_name("DURATION")->default_str(absl::FormatDuration(value));
}

std::string CheckAddress(const std::string& text) {
  return text.empty() ? "" : std::string(ParseHostPort(text).status().message());
}

std::string CheckDialed(const std::string& text) {
  return text.empty() ? "" : std::string(CheckDialAddress(text).message());
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const std::string& home) {
  ServerCommandLine options;
  ServerOptions& server = options.server;
  server.version = HOOKE_VERSION;
  if (!home.empty()) server.state_dir = home + "/.hooke/server";

  CLI::App app("Holds the parameters that groups share. The first server of a cluster is also its coordinator.",
               "hooke-server");
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", absl::StrCat("hooke-server ", HOOKE_VERSION));
  app.add_option("--listen", server.listen, "Address to serve at; port 0 picks a free one")
      ->check(CheckAddress)
      ->type_name("HOST:PORT");
  app.add_option("--advertise", server.advertise, "Address that others dial, where it differs from --listen")
      ->check(CheckAddress)
      ->type_name("HOST:PORT");
  app.add_option("--coordinator", server.coordinator,
                 "Join this coordinator; without it this server is the coordinator")
      ->check(CheckDialed)
      ->type_name("HOST:PORT");
  app.add_option("--state-dir", server.state_dir, "Folder for jobs, logs and snapshots, of this server alone")
      ->type_name("FOLDER");
  app.add_option("--ready-file", options.ready_file, "Write HOST:PORT to this file when serving")->type_name("FILE");
  AddDuration(app, "--snapshot-interval", server.snapshot_interval, "Changed centers are written to disk so often");
  AddDuration(app, "--lease", server.lease, "A worker silent for so long is lost: its groups start again elsewhere",
              {absl::Seconds(5), absl::Hours(24), "5s to 24h: heartbeats come each second"});
  app.add_option("--finished-jobs-max", server.finished_jobs_max,
                 "Jobs that have ended and are kept; of more, those that ended first are forgotten")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1000000}));
  app.add_option("--max-message-bytes", server.max_message_bytes, "Larger messages are refused")
      ->check(CLI::Range(uint64_t{1} << 17, uint64_t{INT32_MAX}));
  app.add_option("--max-center-bytes", server.max_center_bytes, "Memory of all centers held here")
      ->check(CLI::Range(uint64_t{1}, UINT64_MAX));
  app.add_option("--log-level", options.log_level, "Least serious lines to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "critical", "off"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    app.exit(error, out, err);
    if (error.get_exit_code() == 0) return {std::nullopt, 0, out.str()};
    return {std::nullopt, 2, absl::StrCat("hooke-server: ", err.str())};
  }
  if (server.state_dir.empty()) return {std::nullopt, 2, "hooke-server: no home folder is known: set --state-dir\n"};
  return {std::move(options), 0, ""};
}

std::string Describe(const ServerCommandLine& options) {
  const ServerOptions& server = options.server;
  return absl::StrCat("listen=", server.listen, " advertise=", server.advertise, " coordinator=", server.coordinator,
                      " state-dir=", server.state_dir, " ready-file=", options.ready_file,
                      " snapshot-interval=", absl::FormatDuration(server.snapshot_interval),
                      " lease=", absl::FormatDuration(server.lease), " finished-jobs-max=", server.finished_jobs_max,
                      " max-message-bytes=", server.max_message_bytes, " max-center-bytes=", server.max_center_bytes,
                      " log-level=", options.log_level);
}

}  // namespace hooke
