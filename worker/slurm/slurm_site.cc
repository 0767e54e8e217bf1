#include "worker/slurm/slurm_site.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "wire/channel.h"
#include "wire/grpc_status.h"
#include "wire/random_hex.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

constexpr size_t kOutputMax = 8 << 20;  // Of squeue; the rest is dropped.
constexpr size_t kErrorMax = 400;       // Of a failed program's output, for people.
constexpr int kJobsMax = 4096;          // In a request, as the proto file says.
constexpr int kSubmissionsMax = 16;     // In one turn. The next turn goes on.

std::shared_ptr<grpc::Channel> Dial(const SlurmSiteOptions& options) {
  grpc::ChannelArguments arguments;
  SetReconnect(arguments, absl::Seconds(1));
  return OpenChannel(options.facts.coordinator, arguments, options.token.ForCalls());
}

absl::Duration Now() { return SteadyTime() - absl::UnixEpoch(); }

bool IsRefusal(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

// Returns the last line of the file that is not empty; "" if there is none.
std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmSite>> SlurmSite::Start(SlurmSiteOptions options) {
  if (access(options.facts.script.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("--slurm-script: there is no script ", options.facts.script,
                                            ": it is deploy/slurm/worker.sbatch"));
  }
  std::error_code error;
  std::filesystem::create_directories(options.facts.folder, error);
  if (error) return absl::InternalError(absl::StrCat("--state-dir ", options.facts.folder, ": ", error.message()));
  return std::unique_ptr<SlurmSite>(new SlurmSite(std::move(options)));
}

SlurmSite::SlurmSite(SlurmSiteOptions options)
    : options_(std::move(options)),
      instance_(RandomHex(2)),
      stub_(v1::Coordinator::NewStub(Dial(options_))),
      plan_(options_.plan),
      thread_([this] { Run(); }) {}

SlurmSite::~SlurmSite() {
  stop_.Notify();
  thread_.join();
}

absl::Status SlurmSite::Refusal() {
  absl::MutexLock lock(&mutex_);
  return refusal_;
}

void SlurmSite::Run() {
  while (Turn() && !stop_.WaitFor(options_.interval)) {
  }
}

bool SlurmSite::Turn() {
  const absl::StatusOr<v1::SiteHeartbeatResponse> site = AskCoordinator();
  if (!site.ok()) {
    if (!welcomed_ && IsRefusal(site.status())) {
      absl::MutexLock lock(&mutex_);
      refusal_ = site.status();
      return false;
    }
    const std::string problem(site.status().message());
    if (problem != std::exchange(problem_logged_, problem)) {
      options_.logger->warn("coordinator {}: {}; trying again, and the batch jobs go on", options_.facts.coordinator,
                            problem);
    }
    return true;
  }
  problem_logged_.clear();
  if (!std::exchange(welcomed_, true)) {
    options_.logger->info("site {} of coordinator {} gets its workers from Slurm", options_.facts.site,
                          options_.facts.coordinator);
    if (options_.on_welcome) options_.on_welcome();
  }
  const absl::StatusOr<std::string> queue = RunCommand(SqueueCommand());
  // Without the queue, it is not known which batch jobs there are. So none is submitted and none is ended.
  const std::string problem = queue.ok() ? "" : std::string(queue.status().message());
  if (problem != std::exchange(queue_problem_, problem) && !queue.ok()) options_.logger->error("{}", problem);
  if (queue.ok()) Act(plan_.Next(*site, ReadSqueue(options_.facts, *queue), Now()));
  return true;
}

absl::StatusOr<v1::SiteHeartbeatResponse> SlurmSite::AskCoordinator() {
  v1::SiteHeartbeatRequest request;
  request.set_site(options_.facts.site);
  request.set_instance(instance_);
  for (v1::SiteNote& note : plan_.Notes()) {
    if (request.notes_size() == kJobsMax) break;
    if (!queue_problem_.empty()) note.set_text(queue_problem_);
    *request.add_notes() = std::move(note);
  }
  for (const std::string& job_id : plan_.Jobs()) {
    if (request.jobs_size() < kJobsMax) request.add_jobs(job_id);
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.call_limit));
  v1::SiteHeartbeatResponse response;
  const grpc::Status status = stub_->SiteHeartbeat(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

void SlurmSite::Act(const BatchPlan::Actions& actions) {
  for (const BatchPlan::Lost& lost : actions.lost) {
    const std::string why = LostText(lost);
    options_.logger->error("job {}: {}", lost.job.job_id, why);
    plan_.Failed(lost.job.job_id, why, Now());
  }
  for (const BatchPlan::End& end : actions.ends) {
    options_.logger->info("Slurm job {} is not needed any more: scancel", end.id);
    const absl::StatusOr<std::string> ended = RunCommand(ScancelCommand(end));
    if (!ended.ok()) options_.logger->error("{}", std::string(ended.status().message()));
  }
  int submitted = 0;
  for (const BatchPlan::Submission& submission : actions.submissions) {
    if (stop_.HasBeenNotified() || ++submitted > kSubmissionsMax) return;
    Submit(submission);
  }
}

void SlurmSite::Submit(const BatchPlan::Submission& submission) {
  absl::StatusOr<std::string> id = RunCommand(SbatchCommand(options_.facts, submission));
  if (id.ok()) id = ReadSbatch(*id);
  if (!id.ok()) {
    options_.logger->error("job {}: {}", submission.job_id, std::string(id.status().message()));
    return plan_.Failed(submission.job_id, std::string(id.status().message()), Now());
  }
  options_.logger->info("job {}: Slurm job {} for {} ranks", submission.job_id, *id, submission.ranks);
  plan_.Submitted(submission, *id);
}

std::string SlurmSite::LostText(const BatchPlan::Lost& lost) const {
  const std::string log = LogOf(options_.facts, lost.job.id);
  const std::string last = LastLine(log);
  const std::string see =
      absl::StrCat(", see ", log, last.empty() ? "" : absl::StrCat(": ", last.substr(0, kErrorMax)));
  const std::string name = absl::StrCat("Slurm job ", lost.job.id);
  switch (lost.why) {
    case BatchPlan::Lost::Why::kNoWorkers:
      return absl::StrCat(name, " has ended before its workers came", see);
    case BatchPlan::Lost::Why::kLateWorkers:
      return absl::StrCat(name, " runs, but its workers have not come", see);
    case BatchPlan::Lost::Why::kNoGroup:
      return absl::StrCat(name, " has ended, and no group could be placed on its workers");
  }
  return name;
}

absl::StatusOr<std::string> SlurmSite::RunCommand(std::vector<std::string> command) const {
  const std::string name = command[0];
  std::string output;
  ProcessOptions options;
  options.argv = std::move(command);
  options.environment = options_.environment;
  options.folder = options_.facts.folder;
  options.on_line = [&output](absl::string_view line) {
    if (output.size() + line.size() < kOutputMax) absl::StrAppend(&output, line, "\n");
  };
  const absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
  if (!process.ok()) return absl::UnavailableError(absl::StrCat(name, ": ", process.status().message()));
  const std::optional<ProcessEnd> end = (*process)->Wait(absl::Now() + options_.command_limit);
  if (!end.has_value()) {
    (*process)->Stop(absl::ZeroDuration());
    return absl::UnavailableError(
        absl::StrCat(name, " has not ended within ", absl::FormatDuration(options_.command_limit)));
  }
  if (end->ok()) return output;
  output = absl::StrJoin(absl::StrSplit(output, '\n', absl::SkipEmpty()), "; ");
  if (output.size() > kErrorMax) output = output.substr(output.size() - kErrorMax);
  return absl::UnavailableError(absl::StrCat(name, " ", ToString(*end), output.empty() ? "" : ": ", output));
}

}  // namespace hooke
