#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/commands/watch_command.h"
#include "client/history/loss_chart.h"
#include "client/text/job_text.h"
#include "client/watch/watch.h"

namespace hooke {
namespace {

// Returns a chart with what the job has reported before. A job without points, or whose history cannot be read, has an
// empty one: the watching then says what is wrong.
LossChart ChartOf(CoordinatorClient& coordinator, const std::string& job_id) {
  const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator.ReadHistory(job_id);
  return points.ok() ? LossChart(*points) : LossChart();
}

std::unique_ptr<WatchScreen> MakeScreen(const Invocation& invocation, CoordinatorClient& coordinator,
                                        const std::string& job_id) {
  if (invocation.json()) return MakeJsonScreen(*invocation.out, *invocation.err);
  if (!invocation.terminal) return MakePlainScreen(*invocation.out, WatchLogOptions());
  WatchViewOptions options;
  options.width = invocation.width;
  options.height = invocation.height;
  return MakeTerminalScreen(*invocation.out, options, ChartOf(coordinator, job_id));
}

int Watch(const Invocation& invocation, const std::string& job_id, double patience_seconds) {
  Interrupts interrupts;  // Must exist before gRPC starts threads.
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  return coordinator == nullptr ? code : WatchToTheEnd(invocation, *coordinator, job_id, patience_seconds, interrupts);
}

}  // namespace

int WatchToTheEnd(const Invocation& invocation, CoordinatorClient& coordinator, const std::string& job_id,
                  double patience_seconds, Interrupts& interrupts) {
  WatchOptions options;
  options.patience = absl::Seconds(patience_seconds);
  const std::unique_ptr<WatchScreen> screen = MakeScreen(invocation, coordinator, job_id);
  const absl::StatusOr<v1::JobStatus> job = FollowJob(coordinator, job_id, *screen, &interrupts, options);
  if (absl::IsCancelled(job.status())) {
    *invocation.err << "hooke: job " << job_id << " goes on; `hooke watch " << job_id
                    << "` shows it again, `hooke cancel " << job_id << "` stops it" << std::endl;
    return kInterrupted;
  }
  if (!job.ok()) return Report(invocation, job.status());
  if (job->state() != v1::JOB_STATE_SUCCEEDED) {
    return Report(invocation,
                  absl::UnknownError(absl::StrCat(FailureText(*job), "; `hooke logs ", job_id, "` shows its log")));
  }
  if (!invocation.json() && job->has_center()) {
    // The evaluation of a user's program may have no accuracy.
    const bool knows = !std::isnan(job->center().accuracy());
    *invocation.out << (knows ? "center test accuracy: " : "center: ")
                    << (knows ? PercentText(job->center().accuracy()) : CenterText(job->center())) << std::endl;
  }
  return kSucceeded;
}

std::string FailureText(const v1::JobStatus& job) {
  const std::string how = job.state() == v1::JOB_STATE_CANCELLED ? "was cancelled"
                          : job.state() == v1::JOB_STATE_HELD    ? "is held"
                                                                 : "failed";
  return absl::StrCat("job ", job.job_id(), " ", how, ": ", Printable(job.reason()));
}

void AddPatienceFlag(Command& command, double& patience_seconds) {
  command.Add("--patience", patience_seconds, "Give a coordinator up that has not answered for so long. Default: 300")
      .Range(1.0, 1e6)
      .Type("SECONDS");
}

void AddWatchCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "watch", "Show a job's progress until it ends or is held; exits with 0 when it succeeds, else with 1");
  auto job = std::make_shared<std::string>();
  auto patience = std::make_shared<double>(kDefaultPatienceSeconds);
  command.Add("JOB", *job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  AddPatienceFlag(command, *patience);
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "On a terminal the picture is drawn in place, with a chart of the loss if there is room; else a line is printed "
      "when something changes; with --output json "
      "a JSON object a line.\n"
      "While the coordinator is away the picture stays, grey, with the time it was last heard; it goes on within two "
      "seconds of its return. A coordinator that cannot be reached at the start is an error at once (exit code 1).\n"
      "Ctrl-C ends only the watching (exit code 130): the job goes on.");
  command.Action([&invocation, job, patience] { return Watch(invocation, *job, *patience); });
}

}  // namespace hooke
