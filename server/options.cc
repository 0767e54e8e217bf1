#include "server/options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "flags/command_line.h"
#include "server/scheduling/fair_share.h"
#include "wire/address_fault.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

struct DurationRange {
  absl::Duration least = absl::Nanoseconds(1);
  absl::Duration most = absl::Hours(24 * 365);
  std::string allowed = "one like 30s, more than 0, up to 8760h";
};

Argument::CheckText CheckDuration(const DurationRange& range = {}) {
  return [range](const std::string& text) {
    absl::Duration value;
    const bool parsed = absl::ParseDuration(text, &value);
    if (parsed && value >= range.least && value <= range.most) return std::string();
    const char* wrong = parsed ? "is out of range" : "is no duration";
    return absl::StrCat("\"", text, "\" ", wrong, ", allowed is ", range.allowed);
  };
}

std::string CheckDialed(const std::string& text) {
  return text.empty() ? "" : std::string(CheckDialAddress(text).message());
}

void AddAddresses(Command& command, ServerCommandLine& options) {
  ServerOptions& server = options.server;
  command.Add("--listen", server.listen, "Address to serve at; port 0 picks a free one")
      .Check(AddressFault)
      .Type("HOST:PORT");
  command
      .Add("--advertise", server.advertise,
           "Address that workers, users and the coordinator reach, where it differs from --listen")
      .Check(AddressFault)
      .Type("HOST:PORT");
  Argument coordinator =
      command
          .Add("--coordinator", server.coordinator, "Join this coordinator; without it this server is the coordinator")
          .Check(CheckDialed)
          .Type("HOST:PORT");
  command
      .Add("--token-file", options.token_file,
           "File with the cluster's token, which every caller must have; without this flag, that of HOOKE_TOKEN_FILE; "
           "without both, whoever reaches this server may use it")
      .NotEmpty()
      .Type("FILE");
  command
      .Add("--metrics", server.metrics,
           "Serve metrics for Prometheus over HTTP at this address, not encrypted; port 0 picks a free one. If other "
           "machines reach it, they need the token, if there is one. Without this flag nothing is served")
      .Check(AddressFault)
      .Type("HOST:PORT");
  command
      .Add("--dashboard", server.dashboard,
           "Serve a web page of jobs and nodes over HTTP at this address, not encrypted; port 0 picks a free one. It "
           "asks for the cluster's token, if there is one. Without this flag nothing is served")
      .Check(AddressFault)
      .Excludes(coordinator)
      .Type("HOST:PORT");
}

// Adds the flags that say what the coordinator does with jobs that wait or run.
void AddJobs(Command& command, ServerOptions& server) {
  command.Add("--lease", server.lease, "A worker silent for so long is lost: its groups start again elsewhere")
      .Check(CheckDuration({absl::Seconds(5), absl::Hours(24), "5s to 24h: heartbeats come each second"}));
  command
      .Add("--resize-after", server.resize_after,
           "A job with groups.min or groups.max gets other numbers of groups if there was room for more, or none for "
           "some, for so long. Two changes are twice as long apart")
      .Check(CheckDuration({absl::Seconds(1), absl::Hours(24), "1s to 24h"}));
  command
      .Add("--hold-after", server.hold_after,
           "A group that ended so often in a row in the same way, without a new step, waits for `hooke resume`; 0: it "
           "is "
           "started again each time")
      .Range(uint64_t{0}, uint64_t{1000});
  command
      .Add("--owner-slots", server.owner_slots,
           "The most slots that the jobs of one owner take at once, like 8, or 8,anna=16; without it there is no limit")
      .Check([](const std::string& text) { return std::string(ParseOwnerSlots(text).status().message()); })
      .Type("SLOTS");
  command
      .Add("--fair-share-half-life", server.fair_share_half_life,
           "Of jobs with one priority, those of the owner come first who has used the least; use counts half after so "
           "long")
      .Check(CheckDuration({absl::Minutes(1), absl::Hours(24 * 365), "one like 24h, from 1m to 8760h"}));
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const std::string& home) {
  ServerCommandLine options;
  ServerOptions& server = options.server;
  server.version = HOOKE_VERSION;
  if (!home.empty()) server.state_dir = home + "/.hooke/server";

  Command command("hooke-server",
                  "Holds the parameters that groups share. The first server of a cluster is also its coordinator.");
  command.ShowDefaults();
  command.Version(absl::StrCat("hooke-server ", HOOKE_VERSION));
  AddAddresses(command, options);
  command.Add("--state-dir", server.state_dir, "Folder for jobs, logs and snapshots, of this server alone")
      .Type("FOLDER");
  command.Add("--ready-file", options.ready_file, "Write HOST:PORT to this file when serving").Type("FILE");
  command.Add("--snapshot-interval", server.snapshot_interval, "Changed centers are written to disk so often")
      .Check(CheckDuration());
  AddJobs(command, server);
  command
      .Add("--finished-jobs-max", server.finished_jobs_max,
           "Jobs that have ended and are kept; of more, those that ended first are forgotten with their centers")
      .Range(uint64_t{1}, uint64_t{1000000});
  command
      .Add("--keep-jobs", server.keep_jobs,
           "Jobs that ended longer ago are forgotten with their centers; inf keeps them")
      .Check(CheckDuration({absl::Minutes(1), absl::InfiniteDuration(), "one like 720h, from 1m on, or inf"}));
  command
      .Add("--keep-bytes", server.keep_bytes,
           "Bytes of finished centers on all servers; of more, those that ended first are forgotten with their jobs; "
           "0: no limit")
      .Range(uint64_t{0}, uint64_t{INT64_MAX});
  command
      .Add("--files-max-bytes", server.files_max_bytes,
           "Bytes of the files that one job sends to its groups; jobs with more are refused")
      .Range(uint64_t{1}, uint64_t{INT64_MAX});
  command
      .Add("--files-total-bytes", server.files_total_bytes,
           "Bytes of such files that the coordinator keeps for all jobs together; beyond it, new ones are refused")
      .Range(uint64_t{1}, uint64_t{INT64_MAX});
  command.Add("--max-message-bytes", server.max_message_bytes, "Larger messages are refused")
      .Range(uint64_t{1} << 17, uint64_t{INT32_MAX});
  command.Add("--max-center-bytes", server.max_center_bytes, "Memory of all centers held here")
      .Range(uint64_t{1}, UINT64_MAX);
  command.Add("--log-level", options.log_level, "Least serious lines to log")
      .OneOf({"trace", "debug", "info", "warning", "error", "critical", "off"});

  const Parsed parsed = command.Parse(argc, argv);
  if (!parsed.error.empty()) return {std::nullopt, 2, absl::StrCat("hooke-server: ", parsed.Text())};
  if (!parsed.ok()) return {std::nullopt, 0, parsed.Text()};
  if (server.state_dir.empty()) return {std::nullopt, 2, "hooke-server: no home folder is known: set --state-dir\n"};
  return {std::move(options), 0, ""};
}

std::string Describe(const ServerCommandLine& options) {
  const ServerOptions& server = options.server;
  return absl::StrCat(
      "listen=", server.listen, " advertise=", server.advertise, " coordinator=", server.coordinator,
      " token-file=", options.token_file, " metrics=", server.metrics, " dashboard=", server.dashboard,
      " state-dir=", server.state_dir, " ready-file=", options.ready_file,
      " snapshot-interval=", absl::FormatDuration(server.snapshot_interval),
      " lease=", absl::FormatDuration(server.lease), " resize-after=", absl::FormatDuration(server.resize_after),
      " hold-after=", server.hold_after, " owner-slots=", server.owner_slots,
      " fair-share-half-life=", absl::FormatDuration(server.fair_share_half_life),
      " finished-jobs-max=", server.finished_jobs_max, " keep-jobs=", absl::FormatDuration(server.keep_jobs),
      " keep-bytes=", server.keep_bytes, " files-max-bytes=", server.files_max_bytes,
      " files-total-bytes=", server.files_total_bytes, " max-message-bytes=", server.max_message_bytes,
      " max-center-bytes=", server.max_center_bytes, " log-level=", options.log_level);
}

}  // namespace hooke
