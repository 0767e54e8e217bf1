#include "worker/daemon/flags.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "flags/command_line.h"
#include "wire/address_fault.h"
#include "wire/host_port.h"
#include "wire/worker_limits.h"
#include "worker/launch/find_program.h"

namespace hooke {
namespace {

// Returns "" if the text is "auto" or a number of slots, otherwise what is allowed. We parse it ourselves: CLI11 reads
// "-1" for an unsigned number, and its errors do not name the allowed numbers.
std::string CheckSlots(const std::string& text) {
  int slots;
  if (text == "auto") return "";
  if (absl::SimpleAtoi(text, &slots) && slots >= 1 && static_cast<uint32_t>(slots) <= kSlotsMax) return "";
  return absl::StrCat("must be auto, or 1 to ", kSlotsMax, ", got ", text);
}

std::string CheckGpus(const std::string& text) { return text == "auto" || text == "none" ? "" : GpuListFault(text); }

std::string CheckTimeout(const std::string& text) {
  absl::Duration timeout;
  if (absl::ParseDuration(text, &timeout) && timeout >= kTimeoutMin && timeout <= kTimeoutMax) return "";
  return absl::StrCat("must be a duration from 1ms to 24h, like 30s or 1m30s, got ", text);
}

std::string CheckCoordinator(const std::string& text) { return std::string(CheckDialAddress(text).message()); }

std::string CheckNetwork(const std::string& text) { return std::string(CheckSubnet(text).message()); }

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// Returns the path of the first of these programs that is on the PATH. If there is none, returns the last name, so that
// a later error can name it.
std::string MpirunOf(const std::vector<std::string>& names, absl::string_view path) {
  const std::string found = FindProgram(names, path);
  return found.empty() ? names.back() : found;
}

std::string CheckLeave(const std::string& text) {
  absl::Duration within;
  if (absl::ParseDuration(text, &within) && within >= absl::ZeroDuration() && within <= kTimeoutMax) return "";
  return absl::StrCat("must be a duration from 0s to 24h, like 10s, got ", text);
}

std::string CheckIdle(const std::string& text) {
  absl::Duration idle;
  if (absl::ParseDuration(text, &idle) && idle >= absl::ZeroDuration()) return "";
  return absl::StrCat("must be a duration like 5m, or 0, got ", text);
}

std::string CheckSbatchFlag(const std::string& text) {
  return absl::StartsWith(text, "--") && text.size() > 2
             ? ""
             : absl::StrCat("must be one long flag, like --mem=4G, got ", text);
}

// The workers in batch jobs end so long after their last group. Meanwhile it can start again without waiting in Slurm's
// queue.
constexpr absl::Duration kBatchIdle = absl::Minutes(2);

// The texts of flags that are parsed into WorkerFlags later.
struct RawFlags {
  std::string slots = "auto";
  std::string bind = "cores";
  std::string gpus = "auto";
  std::string log_level = "info";
};

// Adds what divides the node among ranks.
void AddShareOptions(Command& command, RawFlags& raw) {
  command
      .Add("--slots", raw.slots,
           "ranks that may run here at once; each gets an equal share of this node's cores and GPUs; auto: as many as "
           "the node has GPUs, or without GPUs as many as it has cores")
      .Check(CheckSlots)
      .Type(absl::StrCat("TEXT:auto, or 1 to ", kSlotsMax));
  command
      .Add("--bind", raw.bind,
           "cores: each rank runs on cores of its own, and the job's log says which; none: ranks run on all cores")
      .OneOf({"cores", "none"});
  command
      .Add("--gpus", raw.gpus,
           "GPUs for ranks, each of which sees only its own, by CUDA_VISIBLE_DEVICES; a list like 0,1 or GPU-5f1e...; "
           "auto: those of this worker's CUDA_VISIBLE_DEVICES, else all that nvidia-smi names; none: ranks see what "
           "this worker sees")
      .Check(CheckGpus);
}

void AddOptions(const FlagDefaults& defaults, Command& command, WorkerFlags& flags, RawFlags& raw) {
  WorkerOptions& worker = flags.worker;
  worker.name = defaults.host_name;
  worker.state_dir = defaults.home.empty() ? "" : defaults.home + "/.hooke/worker";
  worker.launch.flavour = BuiltFlavour();
  worker.launch.rank_binary = defaults.own_folder + "/hooke-rank";
  worker.launch.remote_agent = defaults.own_folder + "/hooke-remote";
  worker.launch.mpirun = MpirunOf(MpirunNames(worker.launch.flavour), defaults.path);
  flags.token_file = defaults.token_file;
  command.Add("--coordinator", worker.coordinator, "HOST:PORT of the coordinator").Check(CheckCoordinator);
  command.Add("--name", worker.name, "name of this worker, unique in the cluster");
  command.Add("--site", worker.site, "where this worker stands; jobs ask for it by groups.site");
  AddShareOptions(command, raw);
  command
      .Add("--token-file", flags.token_file,
           "file with the cluster's token; without this flag, that of HOOKE_TOKEN_FILE")
      .NotEmpty()
      .HideDefault()
      .Type("FILE");
  command.Add(
      "--interface", flags.node.interfaces,
      "network interface for groups on several nodes, like eth0: for the MPI library and for Hooke's own sockets; "
      "may be given several times");
  command
      .Add("--subnet", flags.node.subnets,
           "network whose interfaces are for such groups, like 10.0.0.0/24 or fd00::/64; may be given several times")
      .Check(CheckNetwork);
  command.Add("--allow-commands", worker.allow_commands,
              "run jobs with a command: any program, as the user of this worker; only with a coordinator on this "
              "machine, or with --token-file");
  command
      .Add("--files-cache-bytes", worker.files_cache_bytes,
           "bytes of jobs' files that are kept in the folder; of more, the least recently used leave")
      .Range(uint64_t{1}, uint64_t{INT64_MAX});
  command
      .Add("--metrics", worker.metrics,
           "serve metrics for Prometheus over HTTP at this address, not encrypted; port 0 picks a free one; if other "
           "machines reach it, they need the token, if there is one; without this flag nothing is served")
      .Check(AddressFault)
      .Type("HOST:PORT");
  command.Add("--state-dir", worker.state_dir, "folder for running groups, of this worker alone");
  command.Add("--rank-binary", worker.launch.rank_binary, "the program hooke-rank");
  command.Add("--mpirun", worker.launch.mpirun, "mpirun of the MPI library that hooke-rank is linked with");
  command
      .Add("--collective-timeout", worker.collective_timeout,
           "a collective that takes longer fails its group; while a group starts, 5m if that is more")
      .Check(CheckTimeout)
      .Type("TEXT:DURATION");
  command
      .Add("--exchange-timeout", worker.exchange_timeout, "after so long without a server's answer a group trains on")
      .Check(CheckTimeout)
      .Type("TEXT:DURATION");
  command.Add("--ready-file", flags.ready_file, "written when the coordinator has welcomed this worker");
  command.Add("--describe", flags.describe,
              "print what this worker would use, a line for each fact, and end; `hooke doctor` reads it");
  command.Add("--log-level", raw.log_level, "what is logged to stderr")
      .OneOf({"trace", "debug", "info", "warning", "error", "critical", "off"});
}

// Adds the options of workers that come and go.
void AddSiteOptions(const FlagDefaults& defaults, Command& command, WorkerFlags& flags) {
  SlurmFlags& slurm = flags.slurm;
  flags.worker.leave_within = absl::Seconds(10);
  command
      .Add("--leave-within", flags.worker.leave_within,
           "groups that are to end here, at SIGTERM or when this worker is drained, have so long to exchange and to "
           "keep their state; 0: they are stopped at once")
      .Check(CheckLeave)
      .Type("TEXT:DURATION");
  command.Add("--only-job", flags.worker.only_job, "run only groups of this job, like fashion-1");
  command
      .Add(
          "--exit-idle", flags.exit_idle,
          "end when no group has run here for so long; 0: never; with --slurm this is for the batch jobs' workers, and "
          "2m if it is not given")
      .Check(CheckIdle)
      .Type("TEXT:DURATION");
  slurm.script = defaults.own_folder + "/worker.sbatch";
  command.Add("--slurm", slurm.enabled,
              "run no groups here, but get workers for the site from Slurm: a batch job for each group that waits for "
              "the site; their workers get this program's other flags, but not --slots, --mpirun, --rank-binary and "
              "--log-level");
  command.Add("--slurm-ranks", slurm.ranks_max, "with --slurm: ranks of all its batch jobs together, at most")
      .Range(uint64_t{1}, uint64_t{1} << 20);
  command.Add("--slurm-script", slurm.script, "with --slurm: the batch script, which starts the workers");
  command
      .Add("--sbatch", slurm.sbatch_flags,
           "with --slurm: a flag for sbatch, with its dashes; may be given several times; the same flag from a job "
           "file wins")
      .Check(CheckSbatchFlag)
      .Type("FLAG");
}

}  // namespace

ParsedFlags ParseFlags(int argc, const char* const* argv, const FlagDefaults& defaults) {
  WorkerFlags flags;
  RawFlags raw;
  Command command("hooke-worker", "hooke-worker: a node's daemon; it starts MPI groups as the coordinator says.");
  command.Version(std::string("hooke-worker ") + HOOKE_VERSION);
  command.ShowDefaults();
  AddOptions(defaults, command, flags, raw);
  AddSiteOptions(defaults, command, flags);
  if (const Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return {std::nullopt, parsed.Print()};
  WorkerOptions& worker = flags.worker;
  if (flags.slurm.enabled && (!worker.metrics.empty() || !worker.only_job.empty())) {
    std::cerr << "--slurm: does not go with " << (worker.metrics.empty() ? "--only-job" : "--metrics") << "\n";
    return {std::nullopt, 2};
  }
  if (worker.state_dir.empty()) {
    std::cerr << "--state-dir: $HOME is not set, so that a folder must be given\n";
    return {std::nullopt, 2};
  }
  flags.gpus = raw.gpus;
  if (raw.gpus == "auto" && !flags.slurm.enabled) worker.gpus = defaults.find_gpus();
  if (raw.gpus != "auto" && raw.gpus != "none") worker.gpus = ParseGpuList(raw.gpus);
  if (raw.slots == "auto") {
    const size_t slots = worker.gpus.empty() ? defaults.cores.size() : worker.gpus.size();
    worker.slots = static_cast<uint32_t>(std::min<size_t>(slots, kSlotsMax));
  } else if (!absl::SimpleAtoi(raw.slots, &worker.slots)) {
    worker.slots = 0;  // CheckSlots has checked the text; slots = 0 would be refused later.
  }
  const auto cpus = static_cast<uint32_t>(CountCpus(defaults.cores));
  const uint32_t given = defaults.batch_cpus == 0 ? cpus : defaults.batch_cpus;
  worker.core_shares = CountShares(std::max(1u, worker.slots), given, cpus);
  worker.launch.threads_per_rank = std::max(1u, cpus / worker.core_shares);
  if (raw.bind == "cores") worker.cores = defaults.cores;
  worker.launch.rank_binary = Absolute(worker.launch.rank_binary);
  if (worker.launch.mpirun.find('/') == std::string::npos)
    worker.launch.mpirun = MpirunOf({worker.launch.mpirun}, defaults.path);
  worker.launch.mpirun = InRealFolder(worker.launch.mpirun);
  worker.state_dir = Absolute(worker.state_dir);
  flags.slurm.script = Absolute(flags.slurm.script);
  if (!flags.token_file.empty()) flags.token_file = Absolute(flags.token_file);
  flags.log_level = spdlog::level::from_str(raw.log_level);
  return {std::move(flags), 0};
}

std::vector<std::string> FlagsForBatchJobs(const WorkerFlags& flags) {
  const WorkerOptions& worker = flags.worker;
  const absl::Duration idle = flags.exit_idle == absl::ZeroDuration() ? kBatchIdle : flags.exit_idle;
  std::vector<std::string> all = {
      absl::StrCat("--coordinator=", worker.coordinator),
      absl::StrCat("--site=", worker.site),
      absl::StrCat("--bind=", worker.cores.empty() ? "none" : "cores"),
      absl::StrCat("--gpus=", flags.gpus),
      absl::StrCat("--files-cache-bytes=", worker.files_cache_bytes),
      absl::StrCat("--collective-timeout=", absl::FormatDuration(worker.collective_timeout)),
      absl::StrCat("--exchange-timeout=", absl::FormatDuration(worker.exchange_timeout)),
      absl::StrCat("--leave-within=", absl::FormatDuration(worker.leave_within)),
      absl::StrCat("--exit-idle=", absl::FormatDuration(idle))};
  if (!flags.token_file.empty()) all.push_back(absl::StrCat("--token-file=", flags.token_file));
  if (worker.allow_commands) all.push_back("--allow-commands");
  for (const std::string& name : flags.node.interfaces) all.push_back(absl::StrCat("--interface=", name));
  for (const std::string& network : flags.node.subnets) all.push_back(absl::StrCat("--subnet=", network));
  return all;
}

std::string ToString(const WorkerFlags& flags) {
  const WorkerOptions& worker = flags.worker;
  return absl::StrCat(
      "coordinator=", worker.coordinator, " name=", worker.name, " site=", worker.site, " slots=", worker.slots,
      " bind=", worker.cores.empty() ? "none" : "cores", " gpus=", absl::StrJoin(worker.gpus, ","),
      " interfaces=", absl::StrJoin(flags.node.interfaces, ","), " subnets=", absl::StrJoin(flags.node.subnets, ","),
      " state-dir=", worker.state_dir, " rank-binary=", worker.launch.rank_binary, " mpirun=", worker.launch.mpirun,
      " threads-per-rank=", worker.launch.threads_per_rank,
      " collective-timeout=", absl::FormatDuration(worker.collective_timeout),
      " exchange-timeout=", absl::FormatDuration(worker.exchange_timeout),
      " leave-within=", absl::FormatDuration(worker.leave_within), " token-file=", flags.token_file,
      " allow-commands=", worker.allow_commands ? "yes" : "no", " files-cache-bytes=", worker.files_cache_bytes,
      " metrics=", worker.metrics, " only-job=", worker.only_job, " exit-idle=", absl::FormatDuration(flags.exit_idle),
      " slurm=", flags.slurm.enabled ? "yes" : "no", " ready-file=", flags.ready_file);
}

}  // namespace hooke
