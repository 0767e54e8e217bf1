#include "worker/slurm/slurm_site.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "wire/channel.h"
#include "wire/grpc_status.h"
#include "worker/launch/find_program.h"
#include "worker/launch/process.h"
#include "worker/slurm/batch_logs.h"

namespace hooke {
namespace {

constexpr size_t kOutputMax = 8 << 20;  // The most bytes that are kept of squeue's output.
constexpr size_t kNoteMax = 500;        // Bytes of a note. The coordinator shows no more.
constexpr int kJobsMax = 4096;          // The most `notes`, and the most `jobs`, in one SiteHeartbeatRequest.
constexpr int kSubmissionsMax = 16;     // The most calls of sbatch in one turn. The next turn submits more.
// One call asks how at most this many batch jobs ended. Nobody asks about the others.
constexpr size_t kAskedMax = 500;
// The most bytes of a log's line in a text on how a batch job ended. A note has room for several such texts.
constexpr size_t kEndLineMax = 120;
// A line of a batch job's log that the script itself printed begins so.
constexpr char kScriptSays[] = "worker.sbatch: ";

std::shared_ptr<grpc::Channel> Dial(const SlurmSiteOptions& options) {
  grpc::ChannelArguments arguments;
  SetReconnect(arguments, absl::Seconds(1));
  return OpenChannel(options.facts.coordinator, arguments, options.token.ForCalls());
}

// Returns whether a folder of the environment's PATH has the program.
bool IsOnPath(const std::string& program, const std::vector<std::string>& environment) {
  return std::any_of(environment.begin(), environment.end(), [&program](absl::string_view variable) {
    return absl::ConsumePrefix(&variable, "PATH=") && !FindProgram({program}, variable).empty();
  });
}

absl::Duration Now() { return SteadyTime() - absl::UnixEpoch(); }

bool HasEnded(const BatchPlan::Lost& lost) {
  return lost.why == BatchPlan::Lost::Why::kNoWorkers || lost.why == BatchPlan::Lost::Why::kNoGroup;
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmSite>> SlurmSite::Start(SlurmSiteOptions options) {
  if (access(options.facts.script.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("--slurm-script: there is no script ", options.facts.script,
                                            ": it is deploy/slurm/worker.sbatch"));
  }
  if (absl::Status flags = CheckSbatchFlags(options.facts.sbatch_flags); !flags.ok()) return flags;
  options.environment = SlurmEnvironment(std::move(options.environment));
  for (const char* program : {"sbatch", "squeue", "scancel"}) {
    if (IsOnPath(program, options.environment)) continue;
    return absl::NotFoundError(absl::StrCat("--slurm: there is no program ", program,
                                            " on the PATH: run this on a node from which jobs can be submitted"));
  }
  std::error_code error;
  std::filesystem::create_directories(options.facts.folder, error);
  if (error) return absl::InternalError(absl::StrCat("--state-dir ", options.facts.folder, ": ", error.message()));
  absl::StatusOr<std::unique_ptr<AgentIdentity>> identity = AgentIdentity::Take(options.facts.folder, options.host);
  if (!identity.ok()) return identity.status();
  return std::unique_ptr<SlurmSite>(new SlurmSite(std::move(options), *std::move(identity)));
}

SlurmSite::SlurmSite(SlurmSiteOptions options, std::unique_ptr<AgentIdentity> identity)
    : options_(std::move(options)),
      identity_(std::move(identity)),
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
  if (!site.ok()) return GoesOnAfter(site.status());
  problem_logged_.clear();
  if (!std::exchange(welcomed_, true)) Welcome();
  waiting_.clear();
  for (const v1::SiteJob& job : site->jobs()) {
    if (!job.waiting_ranks().empty()) waiting_.insert(job.job_id());
  }
  if (stop_.HasBeenNotified()) return true;
  const bool idle = site->jobs().empty() && plan_.Jobs().empty();
  if (idle && Now() - looked_ < options_.idle_interval) return true;
  const absl::StatusOr<std::string> queue = RunCommand(SqueueCommand());
  if (queue.ok()) looked_ = Now();
  // Without the queue, it is not known which batch jobs there are. So none is submitted and none is ended.
  const std::string problem = queue.ok() ? "" : std::string(queue.status().message());
  if (problem != std::exchange(queue_problem_, problem) && !queue.ok()) options_.logger->error("{}", problem);
  if (queue.ok()) Act(plan_.Next(*site, ReadSqueue(options_.facts, *queue), Now()));
  return true;
}

bool SlurmSite::GoesOnAfter(const absl::Status& status) {
  if (!welcomed_ && IsRefusal(status)) {
    // An agent that has just ended has the site for a while, and this one may be its successor.
    const bool taken = absl::IsAlreadyExists(status);
    const bool first = taken && refused_from_ == absl::InfiniteDuration();
    if (first) {
      refused_from_ = Now();
      options_.logger->warn("coordinator {}: {}; waiting until that process is given up, at most {}",
                            options_.facts.coordinator, std::string(status.message()),
                            absl::FormatDuration(options_.takeover_limit));
    }
    if (taken && Now() - refused_from_ < options_.takeover_limit) return true;
    absl::MutexLock lock(&mutex_);
    refusal_ = status;
    return false;
  }
  const std::string problem(status.message());
  if (problem != std::exchange(problem_logged_, problem)) {
    options_.logger->warn("coordinator {}: {}; trying again, and the batch jobs go on", options_.facts.coordinator,
                          problem);
  }
  return true;
}

void SlurmSite::Welcome() {
  options_.logger->info("site {} of coordinator {} gets its workers from Slurm", options_.facts.site,
                        options_.facts.coordinator);
  if (options_.on_welcome) options_.on_welcome();
}

absl::StatusOr<v1::SiteHeartbeatResponse> SlurmSite::AskCoordinator() {
  v1::SiteHeartbeatRequest request;
  request.set_site(options_.facts.site);
  request.set_instance(identity_->instance());
  for (v1::SiteNote& note : Notes()) {
    if (request.notes_size() == kJobsMax) break;
    note.set_text(EscapedStart(note.text(), kNoteMax));
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

std::vector<v1::SiteNote> SlurmSite::Notes() const {
  if (queue_problem_.empty()) return plan_.Notes();
  // No batch job is submitted for any job, so this is what they all wait for.
  std::vector<v1::SiteNote> notes;
  for (const std::string& job_id : waiting_) {
    v1::SiteNote& note = notes.emplace_back();
    note.set_job_id(job_id);
    note.set_text(queue_problem_);
  }
  return notes;
}

void SlurmSite::Act(const BatchPlan::Actions& actions) {
  const absl::Duration submit_until = Now() + options_.submit_limit;
  std::map<std::string, std::string> states = EndStates(actions);
  for (const BatchJob& job : actions.gone) TellEnd(job, states[job.id]);
  for (const BatchPlan::Lost& lost : actions.lost) {
    const std::string why = LostText(lost, states[lost.job.id]);
    options_.logger->error("job {}: {}", lost.job.job_id, why);
    plan_.Failed(lost.job.job_id, why, Now());
  }
  for (const BatchPlan::End& end : actions.ends) {
    options_.logger->info("Slurm job {} is not needed any more: scancel", end.id);
  }
  for (std::vector<std::string>& command : ScancelCommands(actions.ends)) {
    if (stop_.HasBeenNotified()) return;
    const absl::StatusOr<std::string> ended = RunCommand(std::move(command));
    if (!ended.ok()) options_.logger->error("{}", std::string(ended.status().message()));
  }
  SubmitAll(actions.submissions, submit_until);
}

void SlurmSite::SubmitAll(const std::vector<BatchPlan::Submission>& submissions, absl::Duration until) {
  int submitted = 0;
  for (const BatchPlan::Submission& submission : submissions) {
    if (stop_.HasBeenNotified() || submitted == kSubmissionsMax || Now() >= until) break;
    // Slurm would refuse the job's other batch jobs for the same reason.
    if (plan_.FailedThisTurn(submission.job_id)) continue;
    ++submitted;
    Submit(submission);
  }
  if (submitted == 0) return;
  KeepNewestLogs(options_.facts.folder, options_.logs_max, [this](const std::string& id) { return plan_.Has(id); });
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

std::map<std::string, std::string> SlurmSite::EndStates(const BatchPlan::Actions& actions) const {
  std::vector<std::string> ids;
  for (const BatchJob& job : actions.gone) ids.push_back(job.id);
  for (const BatchPlan::Lost& lost : actions.lost) {
    if (HasEnded(lost)) ids.push_back(lost.job.id);
  }
  if (ids.empty()) return {};
  if (ids.size() > kAskedMax) ids.resize(kAskedMax);
  const absl::StatusOr<std::string> output = RunCommand(EndStatesCommand(ids));
  if (output.ok()) return ReadEndStates(*output);
  options_.logger->warn("Slurm does not say how Slurm jobs {} ended: {}", absl::StrJoin(ids, ", "),
                        std::string(output.status().message()));
  return {};
}

void SlurmSite::TellEnd(const BatchJob& job, const std::string& state) {
  const std::string log = BatchLogPath(options_.facts.folder, job.id);
  const std::string said = LastLine(log, kScriptSays);
  const std::string text = EndText({job.id, state, EscapedStart(absl::StripPrefix(said, kScriptSays), kEndLineMax), log,
                                    EscapedStart(LastLine(log), kEndLineMax)});
  if (text.empty()) return;
  options_.logger->warn("job {}: {}", job.job_id, text);
  plan_.Tell(job.job_id, text, Now());
}

std::string SlurmSite::LostText(const BatchPlan::Lost& lost, const std::string& state) const {
  const std::string log = BatchLogPath(options_.facts.folder, lost.job.id);
  const std::string last = EscapedStart(LastLine(log), kErrorMax);
  const std::string see = absl::StrCat(", see ", log, last.empty() ? "" : absl::StrCat(": ", last));
  const std::string how = state.empty() ? "" : absl::StrCat(" (", state, ")");
  std::string name = absl::StrCat("Slurm job ", lost.job.id);
  switch (lost.why) {
    case BatchPlan::Lost::Why::kNoWorkers:
      return absl::StrCat(name, " has ended", how, " before its workers came", see);
    case BatchPlan::Lost::Why::kLateWorkers:
      return absl::StrCat(name, " runs, but not all of its workers have come", see);
    case BatchPlan::Lost::Why::kNoGroup:
      return absl::StrCat(name, " has ended", how, ", and no group could be placed on its workers");
    case BatchPlan::Lost::Why::kHeld:
      return absl::StrCat(name, " was held back by Slurm or an administrator: ", lost.job.reason);
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
  const std::optional<ProcessEnd> end = (*process)->Wait(SteadyTime() + options_.command_limit);
  if (!end.has_value()) {
    (*process)->Stop(absl::ZeroDuration());
    return absl::UnavailableError(
        absl::StrCat(name, " has not ended within ", absl::FormatDuration(options_.command_limit)));
  }
  if (end->ok()) return output;
  output = EscapedEnd(absl::StrJoin(absl::StrSplit(output, '\n', absl::SkipEmpty()), "; "), kErrorMax);
  return absl::UnavailableError(absl::StrCat(name, " ", ToString(*end), output.empty() ? "" : ": ", output));
}

}  // namespace hooke
