// The part of GroupRun that prepares a launch: the job's files, the scripts of its ranks, and for a job with a command
// the program and its environment.

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clocks/steady_time.h"
#include "job/command.h"
#include "job/file_manifest.h"
#include "job/group_kinds.h"
#include "job/site_command.h"
#include "worker/daemon/group_run.h"
#include "worker/launch/command_script.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

// Returns the variable's value in an environment of "NAME=value", or `otherwise`.
std::string ValueOf(absl::string_view name, const std::vector<std::string>& environment, std::string otherwise) {
  for (absl::string_view variable : environment) {
    if (absl::ConsumePrefix(&variable, name) && absl::ConsumePrefix(&variable, "=")) otherwise = std::string(variable);
  }
  return otherwise;
}

}  // namespace

std::string GroupRun::CommandFolder(const GroupFolder& folder) const {
  const v1::CommandSpec& command = start_.group().job().command();
  return command.has_files() ? folder.files_path() : command.directory();
}

absl::Status GroupRun::PrepareFiles(const GroupFolder& folder) {
  if (!command_ || !start_.group().job().command().has_files()) return absl::OkStatus();
  const v1::FileSet& set = start_.group().job().command().files();
  const absl::Time begin = SteadyTime();
  const auto stopped = [this] { return WhyStopped(); };
  const FetchContents fetch = [&](const std::vector<std::string>& sha256, const auto& take) {
    return FetchFromCoordinator(options_.fetch, {id_.job_id(), sha256}, take, stopped);
  };
  absl::StatusOr<FileCache::Made> made = options_.files->Make(set, folder.files_path(), fetch, stopped);
  if (!made.ok()) {
    return absl::Status(made.status().code(), absl::StrCat("files of the job: ", made.status().message()));
  }
  files_ = std::move(made->use);
  fetching_ = SteadyTime() - begin;
  const std::string text = absl::StrFormat("fetched %d of %d files, %s, in %.1f s", made->fetched, made->contents,
                                           BytesText(made->fetched_bytes), absl::ToDoubleSeconds(fetching_));
  options_.logger->info("group {}: {}", name_, text);
  callbacks_.log("worker", text);
  return absl::OkStatus();
}

void GroupRun::TakeCores(LaunchOptions& launch) {
  if (options_.cores == nullptr) return;
  cores_ = options_.cores->Take(part_.ranks);
  const CoresChoice& choice = cores_->choice();
  const std::string text = SayCores(choice, options_.worker, part_.first_rank);
  options_.logger->info("group {}: {}", name_, text);
  callbacks_.log("worker", text);
  uint32_t rank = part_.first_rank;
  for (const std::vector<int>& cpus : choice.cpus_of_rank) {
    // Ranks move in lockstep, so all have the same number of threads.
    const auto threads = static_cast<uint32_t>(cpus.size());
    launch.threads_per_rank = rank == part_.first_rank ? threads : std::min(launch.threads_per_rank, threads);
    launch.cpus_of_rank[rank++] = CpuList(cpus);
  }
}

void GroupRun::TakeGpus(LaunchOptions& launch) {
  if (options_.gpus == nullptr) return;
  // If the job itself sets the variable, the job's value stays.
  for (const std::string& variable : launch.added_environment) {
    if (absl::StartsWith(variable, "CUDA_VISIBLE_DEVICES=")) return;
  }
  gpus_ = options_.gpus->Take(part_.ranks, KindOf(start_.group().job(), id_.group()).gpus_per_rank());
  const std::vector<std::vector<GpuName>> gpus = gpus_->gpus_of_rank();
  std::string text = SayGpus(gpus, options_.worker, part_.first_rank, gpus_->shared());
  if (!gpus_->others_unknown().empty()) {
    absl::StrAppend(&text, "; the ranks of other workers are not known, because ", gpus_->others_unknown());
  }
  options_.logger->info("group {}: {}", name_, text);
  callbacks_.log("worker", text);
  uint32_t rank = part_.first_rank;
  for (const std::vector<GpuName>& of_rank : gpus) launch.gpus_of_rank[rank++] = absl::StrJoin(of_rank, ",");
}

absl::StatusOr<LaunchOptions> GroupRun::Prepare(const GroupFolder& folder) {
  LaunchOptions launch = options_.launch;
  launch.ranks = start_.ranks();
  launch.rank_arguments = {"--start", folder.start_file()};
  launch.session_folder = folder.path();
  launch.memory_folder = folder.memory_path();
  if (command_) {
    if (absl::Status status = PrepareCommand(folder, launch); !status.ok()) return status;
  }
  launch.rank_folder = command_ ? CommandFolder(folder) : folder.path();
  TakeCores(launch);
  TakeGpus(launch);
  if (part_.alone && launch.cpus_of_rank.empty() && launch.gpus_of_rank.empty()) return launch;
  launch.hosts = hosts_;
  launch.rank_script = folder.rank_script();
  if (absl::Status status = folder.WriteRankScript(RankScript(launch)); !status.ok()) return status;
  if (part_.alone || !part_.leads) return launch;
  launch.added_environment.push_back(absl::StrCat("HOOKE_REMOTE_SOCKET=", folder.socket()));
  absl::StatusOr<std::string> agent = folder.LinkAgent(launch.remote_agent);
  if (!agent.ok()) return agent.status();
  launch.remote_agent = *std::move(agent);
  return launch;
}

absl::Status GroupRun::PrepareCommand(const GroupFolder& folder, LaunchOptions& launch) {
  const v1::CommandSpec& command = start_.group().job().command();
  // By default, Python collects some KiB before it writes into a pipe. Users read the log while the command runs, so
  // its lines must come at once.
  launch.added_environment = {"PYTHONUNBUFFERED=1"};
  const SiteCommand at_site = CommandAtSite(command, options_.site, ValueOf("PATH", launch.environment, ""));
  for (const std::string& variable : at_site.variables) launch.added_environment.push_back(variable);
  launch.added_environment.push_back(absl::StrCat("HOOKE_START=", folder.start_file()));
  // Programs that load libhooke at run time get the library of this worker's version.
  const fs::path library = fs::path(launch.rank_binary).parent_path() / "libhooke.so";
  if (std::error_code error; fs::exists(library, error)) {
    launch.added_environment.push_back(absl::StrCat("HOOKE_LIBRARY=", library.string()));
  }
  const std::string path = ValueOf("PATH", launch.added_environment, ValueOf("PATH", launch.environment, ""));
  absl::Status status = FindCommand(at_site.arguments[0], CommandFolder(folder), path);
  if (!status.ok()) return status;
  launch.rank_binary = "/bin/sh";
  launch.rank_arguments = {folder.command_file()};
  launch.tells_threads = false;
  auto output = RankOutput::Open(folder.path(), {part_.first_rank, part_.ranks},
                                 [this](const auto& line) { ReadRankLine(line); });
  if (!output.ok()) return output.status();
  rank_output_ = *std::move(output);
  return folder.WriteCommandFile(CommandScript(at_site.arguments, folder.path(), mark_));
}

}  // namespace hooke
