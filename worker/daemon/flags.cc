#include "worker/daemon/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

// Parsed by ourselves: CLI11 reads "-1" for an unsigned number, and names none of what is allowed.
CLI::Validator SlotsRange() {
  return CLI::Validator(
      [](std::string& text) {
        int slots;
        if (absl::SimpleAtoi(text, &slots) && slots >= 1 && static_cast<uint32_t>(slots) <= kSlotsMax)
          return std::string();
        return absl::StrCat("must be 1 to ", kSlotsMax, ", got ", text);
      },
      absl::StrCat("1 to ", kSlotsMax));
}

CLI::Validator DurationRange() {
  return CLI::Validator(
      [](std::string& text) {
        absl::Duration duration;
        if (absl::ParseDuration(text, &duration) && duration >= kTimeoutMin && duration <= kTimeoutMax)
          return std::string();
        return absl::StrCat("must be a duration from 1ms to 24h, like 30s or 1m30s, got ", text);
      },
      "DURATION");
}

absl::Duration ToDuration(const std::string& checked) {
  absl::Duration duration;
  return absl::ParseDuration(checked, &duration) ? duration : absl::ZeroDuration();
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// The same file by its folder's real name. Open MPI takes the folder above that of an absolute mpirun for its prefix
// and refuses "/", which is what /bin/mpirun says where /bin is a link to /usr/bin.
std::string InRealFolder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::path(path).parent_path(), error);
  return error ? path : (folder / std::filesystem::path(path).filename()).string();
}

// The flags that are not yet in their place in WorkerFlags.
struct RawFlags {
  std::string slots;
  std::string collective_timeout = "30s";
  std::string exchange_timeout = "5s";
  std::string log_level = "info";
};

void AddOptions(const FlagDefaults& defaults, CLI::App& app, WorkerFlags& flags, RawFlags& raw) {
  WorkerOptions& worker = flags.worker;
  worker.name = defaults.host_name;
  worker.state_dir = defaults.home.empty() ? "" : defaults.home + "/.hooke/worker";
  worker.launch.flavour = BuiltFlavour();
  worker.launch.rank_binary = defaults.own_folder + "/hooke-rank";
  worker.launch.mpirun = FindProgram(MpirunNames(worker.launch.flavour), defaults.path);
  raw.slots = absl::StrCat(defaults.cores);
  app.add_option("--coordinator", worker.coordinator, "HOST:PORT of the coordinator");
  app.add_option("--name", worker.name, "name of this worker, unique in the cluster");
  app.add_option("--site", worker.site, "where this worker stands; jobs ask for it by groups.site");
  app.add_option("--slots", raw.slots, "ranks that may run here at once")->check(SlotsRange());
  app.add_option("--state-dir", worker.state_dir, "folder for running groups, of this worker alone");
  app.add_option("--rank-binary", worker.launch.rank_binary, "the program hooke-rank");
  app.add_option("--mpirun", worker.launch.mpirun, "mpirun of the MPI library that hooke-rank is linked with");
  app.add_option("--collective-timeout", raw.collective_timeout, "a collective that takes longer fails its group")
      ->check(DurationRange());
  app.add_option("--exchange-timeout", raw.exchange_timeout,
                 "after so long without a server's answer a group trains on")
      ->check(DurationRange());
  app.add_option("--ready-file", flags.ready_file, "written when the coordinator has welcomed this worker");
  app.add_option("--log-level", raw.log_level, "what is logged to stderr")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "critical", "off"}));
}

}  // namespace

ParsedFlags ParseFlags(int argc, const char* const* argv, const FlagDefaults& defaults) {
  WorkerFlags flags;
  RawFlags raw;
  CLI::App app("hooke-worker: a node's daemon; it starts MPI groups as the coordinator says.", "hooke-worker");
  app.set_version_flag("--version", std::string("hooke-worker ") + HOOKE_VERSION);
  app.option_defaults()->always_capture_default();
  AddOptions(defaults, app, flags, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2};
  }
  WorkerOptions& worker = flags.worker;
  if (worker.state_dir.empty()) {
    std::cerr << "--state-dir: $HOME is not set, so that a folder must be given\n";
    return {std::nullopt, 2};
  }
  if (!absl::SimpleAtoi(raw.slots, &worker.slots)) worker.slots = 0;  // Refused later; checked above.
  worker.launch.threads_per_rank = std::max(1u, defaults.cores / std::max(1u, worker.slots));
  worker.launch.rank_binary = Absolute(worker.launch.rank_binary);
  if (worker.launch.mpirun.find('/') == std::string::npos)
    worker.launch.mpirun = FindProgram({worker.launch.mpirun}, defaults.path);
  worker.launch.mpirun = InRealFolder(worker.launch.mpirun);
  worker.state_dir = Absolute(worker.state_dir);
  worker.collective_timeout = ToDuration(raw.collective_timeout);
  worker.exchange_timeout = ToDuration(raw.exchange_timeout);
  // A stopped rank lets its group's collectives fail first, where there are others; then the daemon ends the group.
  worker.watch.give_up_after = worker.collective_timeout + worker.watch.silent_after;
  flags.log_level = spdlog::level::from_str(raw.log_level);
  return {std::move(flags), 0};
}

std::string ToString(const WorkerFlags& flags) {
  const WorkerOptions& worker = flags.worker;
  return absl::StrCat(
      "coordinator=", worker.coordinator, " name=", worker.name, " site=", worker.site, " slots=", worker.slots,
      " state-dir=", worker.state_dir, " rank-binary=", worker.launch.rank_binary, " mpirun=", worker.launch.mpirun,
      " threads-per-rank=", worker.launch.threads_per_rank,
      " collective-timeout=", absl::FormatDuration(worker.collective_timeout),
      " exchange-timeout=", absl::FormatDuration(worker.exchange_timeout), " ready-file=", flags.ready_file);
}

std::string FindProgram(const std::vector<std::string>& names, absl::string_view path) {
  for (const std::string& name : names) {
    for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
      std::string candidate = absl::StrCat(folder, "/", name);
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  return names.empty() ? "" : names.back();
}

}  // namespace hooke
