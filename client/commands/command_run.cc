#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands/command.h"
#include "client/commands/job_owner.h"
#include "client/commands/left_run.h"
#include "client/commands/logs_command.h"
#include "client/commands/send_files.h"
#include "client/commands/watch_command.h"
#include "client/coordinator_client.h"
#include "client/files/collect_files.h"
#include "client/local_cluster/cluster_folder.h"
#include "client/local_cluster/local_cluster.h"
#include "client/process/interrupts.h"
#include "client/text/job_text.h"
#include "client/text/terminal_text.h"
#include "clocks/process_age.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_field.h"
#include "job/job_keys.h"
#include "job/job_refusal.h"
#include "job/job_state.h"
#include "job/yaml/yaml_sites.h"

namespace hooke {
namespace {

struct RunFlags {
  std::string name = "run";
  uint32_t groups = 1;
  uint32_t ranks = 1;
  std::string rule;       // Empty: the default.
  uint32_t interval = 0;  // 0: the default.
  std::string state_dir;
  std::string programs_dir;
  std::vector<std::string> files;
};

// The job of a run, and the files to upload before it is submitted.
struct RunJob {
  v1::JobSpec spec;
  CollectedFiles files;
};

// Reads the files of --file in the current folder.
absl::StatusOr<CollectedFiles> CollectRunFiles(const std::string& folder, const RunFlags& flags) {
  std::vector<std::string> paths;
  for (const std::string& file : flags.files) {
    absl::StatusOr<std::string> path = ToFilePath(*FindJobKey("files"), file);
    if (!path.ok()) return absl::InvalidArgumentError(absl::StrCat("--file: ", path.status().message()));
    paths.push_back(*std::move(path));
  }
  absl::StatusOr<CollectedFiles> files = CollectFiles(folder, paths);
  if (!files.ok()) return absl::InvalidArgumentError(absl::StrCat("--file: ", files.status().message()));
  return files;
}

absl::StatusOr<RunJob> MakeJob(const std::vector<std::string>& command, const RunFlags& flags) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("the current folder, in which the command would run, cannot be read: ", error.message(),
                     "; change to one that exists"));
  }
  v1::JobSpec job;
  job.set_name(flags.name);
  *job.mutable_command()->mutable_arguments() = {command.begin(), command.end()};
  CollectedFiles files;
  if (flags.files.empty()) {
    job.mutable_command()->set_directory(folder.string());
  } else {
    absl::StatusOr<CollectedFiles> collected = CollectRunFiles(folder.string(), flags);
    if (!collected.ok()) return collected.status();
    files = *std::move(collected);
    *job.mutable_command()->mutable_files() = files.set;
  }
  job.mutable_groups()->set_count(flags.groups);
  job.mutable_groups()->set_ranks(flags.ranks);
  if (!flags.rule.empty()) {
    const JobKey& key = *FindJobKey("averaging.rule");
    const absl::StatusOr<KeyValue> rule = ParseKeyValue(key, flags.rule, /*quoted=*/false);
    if (!rule.ok()) return absl::InvalidArgumentError(absl::StrCat("--rule: ", rule.status().message()));
    SetField(key, *rule, job);
  }
  job.mutable_averaging()->set_interval(flags.interval);
  SetOwner(job);
  job = FillDefaults(std::move(job));
  const JobKey& interval = *FindJobKey("averaging.interval");
  if (flags.interval > 0 && !Applies(interval, job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--interval ", DoesNotApplyText(ConditionOf(interval), flags.rule), ": leave it out"));
  }
  if (absl::Status refused = RefusalOf(CheckJob(job)); !refused.ok()) return refused;
  return RunJob{std::move(job), std::move(files)};
}

constexpr char kOwner[] = "hooke run";
constexpr absl::Duration kLookAgain = absl::Seconds(1);  // The pause between two looks at whether the job is held.

// Returns an error if the cluster in the folder belongs to another `hooke run`, because that run stops the cluster at
// its own end.
absl::Status CheckNoOtherRun(const std::string& state_dir) {
  const ClusterOwner owner = OwnerOf(state_dir);
  if (owner.command != kOwner) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("another `hooke run`, process ", owner.pid,
                   ", has a cluster in that folder and stops it at its end; wait for it, name another folder with "
                   "--state-dir, or start a cluster for both with `hooke up`"));
}

// Starts a cluster. Returns null if the user names a coordinator, or if `hooke up` runs a cluster already.
absl::StatusOr<std::unique_ptr<LocalCluster>> StartIfNone(const Invocation& invocation, const RunFlags& flags,
                                                          Interrupts& interrupts) {
  if (!invocation.coordinator.empty() || !invocation.environment_coordinator.empty()) return nullptr;
  LocalClusterOptions options;
  options.command = kOwner;
  options.state_dir = flags.state_dir.empty() ? invocation.default_state_dir()
                                              : std::filesystem::absolute(flags.state_dir).lexically_normal().string();
  if (options.state_dir.empty()) {
    return absl::FailedPreconditionError("HOME is not set; say with --state-dir where the cluster keeps its files");
  }
  if (RunningClusterAddress(options.state_dir).has_value()) {
    if (absl::Status status = CheckNoOtherRun(options.state_dir); !status.ok()) return status;
    return nullptr;
  }
  options.token_file = invocation.absolute_token_file();
  options.programs_dir = flags.programs_dir.empty() ? invocation.programs_dir : flags.programs_dir;
  // One worker divides the machine's cores among all ranks.
  options.servers = 1;
  options.workers = 1;
  options.slots = static_cast<int>(flags.groups * flags.ranks);
  absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options, &interrupts);
  if (cluster.ok()) {
    *invocation.err << "hooke: started a cluster for this run; its files are in " << options.state_dir << std::endl;
  }
  return cluster;
}

// Returns OK while the log can be followed. CANCELLED: Ctrl-C. UNAVAILABLE: our own coordinator has ended.
absl::Status GoesOn(const Invocation& invocation, LocalCluster* cluster, Interrupts& interrupts) {
  if (interrupts.WaitFor(absl::ZeroDuration()).has_value()) return absl::CancelledError("interrupted");
  if (cluster == nullptr) return absl::OkStatus();
  for (const std::string& text : cluster->NewlyEnded()) *invocation.err << "hooke: " << text << std::endl;
  return cluster->coordinator_runs()
             ? absl::OkStatus()
             : absl::UnavailableError(
                   absl::StrCat("the run's coordinator has ended; its log is in ", cluster->state_dir(), "/logs"));
}

int Cancel(const Invocation& invocation, CoordinatorClient& coordinator, const std::string& job_id,
           LocalCluster* cluster) {
  const absl::StatusOr<v1::JobStatus> job = coordinator.CancelJob(job_id);
  if (!job.ok()) return Report(invocation, job.status());
  if (cluster != nullptr) ForgetRun(cluster->state_dir());
  *invocation.err << "hooke: job " << job_id << " is cancelled" << std::endl;
  return kInterrupted;
}

// Cancels a job that is held: nobody would resume it after this command. Returns the exit code.
int GiveUp(const Invocation& invocation, CoordinatorClient& coordinator, const v1::JobStatus& held,
           LocalCluster* cluster) {
  if (const auto job = coordinator.CancelJob(held.job_id()); !job.ok()) return Report(invocation, job.status());
  if (cluster != nullptr) ForgetRun(cluster->state_dir());
  return Report(invocation, absl::UnknownError(absl::StrCat(FailureText(held), "; it is cancelled")));
}

// Says on stderr what a job in the queue waits for, because its log is empty until it starts. Says each text once in a
// row; `said` is the last one.
void SayWhyQueued(const Invocation& invocation, const v1::JobStatus& job, std::string& said) {
  if (job.state() != v1::JOB_STATE_QUEUED || job.reason() == said) return;
  said = job.reason();
  *invocation.err << "hooke: job " << Printable(job.job_id()) << " is queued" << ReasonText("queued", job.reason())
                  << std::endl;
}

// Submits the job and follows it to its end.
int Follow(const Invocation& invocation, const RunJob& run, LocalCluster* cluster, Interrupts& interrupts) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<absl::Duration> sent = SendFiles(invocation, *coordinator, run.spec, run.files, [&interrupts] {
    return !interrupts.WaitFor(absl::ZeroDuration()).has_value();
  });
  if (!sent.ok()) {
    return Report(invocation, sent.status(), absl::IsCancelled(sent.status()) ? kInterrupted : kFailed);
  }
  const absl::StatusOr<std::string> job_id = coordinator->Submit(run.spec, {ProcessAge(), *sent});
  if (!job_id.ok()) {
    return Report(invocation, job_id.status(), ReadRefusal(job_id.status()).problems.empty() ? kFailed : kUsage);
  }
  *invocation.err << "hooke: submitted " << Printable(*job_id) << std::endl;
  if (cluster != nullptr) {
    if (absl::Status status = NoteRun(cluster->state_dir(), *job_id); !status.ok()) Report(invocation, status);
  }
  LogOptions options;
  options.job = *job_id;
  options.follow = true;
  std::optional<v1::JobStatus> held;
  std::string queued;  // Why the job waits in the queue, in the words that were printed last.
  absl::Time look_at = absl::InfinitePast();
  options.goes_on = [&] {
    absl::Status status = GoesOn(invocation, cluster, interrupts);
    if (!status.ok() || absl::Now() < look_at) return status;
    look_at = absl::Now() + kLookAgain;
    const absl::StatusOr<v1::JobStatus> job = coordinator->GetJob(*job_id);
    if (job.ok() && job->state() == v1::JOB_STATE_HELD) held = *job;
    if (job.ok()) SayWhyQueued(invocation, *job, queued);
    if (held.has_value()) status = absl::AbortedError("held");
    return status;
  };
  const absl::Status end = PrintLog(invocation, *coordinator, options);
  if (held.has_value()) return GiveUp(invocation, *coordinator, *held, cluster);
  if (absl::IsCancelled(end)) return Cancel(invocation, *coordinator, *job_id, cluster);
  if (!end.ok()) return Report(invocation, end);
  const absl::StatusOr<v1::JobStatus> job = coordinator->GetJob(*job_id);
  if (!job.ok()) return Report(invocation, job.status());
  if (!HasEnded(job->state())) {
    // SIGPIPE came, because nobody reads our output any more, as in `hooke run ... | head`. It is taken here, because a
    // pending signal would later shorten the cluster's stop.
    interrupts.WaitFor(absl::ZeroDuration());
    return Cancel(invocation, *coordinator, *job_id, cluster);
  }
  if (cluster != nullptr) ForgetRun(cluster->state_dir());
  if (job->state() == v1::JOB_STATE_SUCCEEDED) return kSucceeded;
  return Report(invocation, absl::UnknownError(FailureText(*job)));
}

int Run(const Invocation& invocation, const RunFlags& flags) {
  if (invocation.command.empty()) {
    return Report(invocation,
                  absl::InvalidArgumentError("no command; name one after --, as in `hooke run --ranks 2 -- python3 "
                                             "train.py`"),
                  kUsage);
  }
  const absl::StatusOr<RunJob> job = MakeJob(invocation.command, flags);
  if (!job.ok()) return Report(invocation, job.status(), kUsage);
  Interrupts interrupts;  // Must exist before gRPC starts threads.
  const absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = StartIfNone(invocation, flags, interrupts);
  if (!cluster.ok()) {
    return Report(invocation, cluster.status(), absl::IsCancelled(cluster.status()) ? kInterrupted : kFailed);
  }
  Invocation here = invocation;
  if (*cluster != nullptr) here.coordinator = (*cluster)->coordinator();
  if (*cluster == nullptr && !flags.state_dir.empty() && here.coordinator.empty()) {
    here.coordinator = RunningClusterAddress(flags.state_dir).value_or("");
  }
  if (*cluster != nullptr) CancelLeftRun(here, (*cluster)->state_dir());
  const int code = Follow(here, *job, cluster->get(), interrupts);
  if (*cluster == nullptr) return code;
  for (const std::string& name : (*cluster)->Stop(&interrupts)) {
    *invocation.err << "hooke: " << name << " did not stop in time and was killed" << std::endl;
  }
  return code;
}

}  // namespace

void AddRunCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "run", "Run a command as the ranks of a job, show its log, and exit with 0 when it succeeds, else with 1");
  auto flags = std::make_shared<RunFlags>();
  command.Add("--groups", flags->groups, "Groups. Default: 1").Range(uint64_t{1}, uint64_t{64}).Type("N");
  command.Add("--ranks", flags->ranks, "Ranks of each group. Default: 1").Range(uint64_t{1}, uint64_t{64}).Type("N");
  command.Add("--rule", flags->rule, "averaging.rule of the job. Default: elastic")
      .OneOf(FindJobKey("averaging.rule")->choices)
      .Type("RULE");
  const KeyRange interval = FindJobKey("averaging.interval")->range;
  command.Add("--interval", flags->interval, "averaging.interval of the job. Default: that of the rule")
      .Range(static_cast<uint64_t>(interval.min), static_cast<uint64_t>(interval.max))
      .Type("N");
  command
      .Add("--file", flags->files,
           "A file, or a folder with all it holds, that each group gets a copy of; the command then runs in that copy. "
           "May be given several times. Default: the command runs in the current folder, and nothing is copied")
      .Type("PATH");
  command.Add("--name", flags->name, "Name of the job. Default: run").Type("NAME");
  command.Add("--state-dir", flags->state_dir, "Folder of the cluster, as for `hooke up`. Default: $HOME/.hooke/up")
      .Type("DIR");
  command.Add("--programs-dir", flags->programs_dir, "Folder of hooke-server and hooke-worker. Default: that of hooke")
      .Type("DIR");
  AddCoordinatorFlag(command, invocation);
  command.Footer(
      "The command stands after --, and runs in the current folder, or in a copy of what --file names: hooke run "
      "--groups 2 --ranks 2 -- python3 "
      "train.py\n"
      "If no cluster runs here, one is started for the run and stopped after it. What it stored stays: `hooke up` and "
      "`hooke export` find it.\n"
      "The log goes to the standard output, what this command itself says to the standard error.\n"
      "Ctrl-C cancels the job (exit code 130). docs/commands.md says how a command runs; a job file can say more.");
  command.Action([&invocation, flags] { return Run(invocation, *flags); });
}

}  // namespace hooke
