// `hooke metrics` and `hooke plot`: what a job's history says, as CSV and as a picture.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/history/history_svg.h"
#include "client/history/series_name.h"
#include "client/text/listing.h"
#include "files/new_file.h"
#include "job/history_csv.h"

namespace hooke {
namespace {

struct MetricsFlags {
  std::string job;
  bool csv = false;
};

struct PlotFlags {
  std::vector<std::string> jobs;
  std::string svg;
  std::string over = "steps";
  bool force = false;
};

// Returns a row for each series: how many points it has, and its last one.
std::string LastPointsTable(const std::vector<v1::HistoryPoint>& points) {
  std::vector<std::vector<std::string>> rows = {
      {"SERIES", "POINTS", "STEP", "EPOCH", "LOSS", "SAMPLES/S", "DISTANCE", "STALENESS", "ACCURACY"}};
  for (size_t i = 0, first = 0; i < points.size(); ++i) {
    const v1::HistoryPoint& point = points[i];
    const bool group = point.has_group();
    if (i + 1 < points.size() && SameSeries(point, points[i + 1])) continue;
    rows.push_back({SeriesName(point), absl::StrCat(i + 1 - first), absl::StrCat(point.step()),
                    absl::StrFormat("%.2f", point.epoch()), absl::StrFormat("%.4f", point.loss()),
                    group ? absl::StrFormat("%.0f", point.samples_per_s()) : "-",
                    point.has_center_distance() ? absl::StrFormat("%.3g", point.center_distance()) : "-",
                    point.has_staleness() ? absl::StrFormat("%.2f", point.staleness()) : "-",
                    group ? "-" : absl::StrFormat("%.2f %%", 100 * point.accuracy())});
    first = i + 1;
  }
  return FormatTable(rows);
}

int ShowMetrics(const Invocation& invocation, const MetricsFlags& flags) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator->ReadHistory(flags.job);
  if (!points.ok()) return Report(invocation, points.status());
  *invocation.out << (flags.csv ? HistoryCsv(flags.job, *points) : LastPointsTable(*points)) << std::flush;
  return kSucceeded;
}

int Plot(const Invocation& invocation, const PlotFlags& flags) {
  if (absl::Status status = CheckNewFile(flags.svg, flags.force); !status.ok()) return Report(invocation, status);
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  std::vector<PlottedJob> jobs;
  for (const std::string& job_id : flags.jobs) {
    absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator->ReadHistory(job_id);
    if (!points.ok()) return Report(invocation, points.status());
    jobs.push_back({job_id, *std::move(points)});
  }
  const std::string svg = HistorySvg(jobs, flags.over == "time" ? PlotAxis::kTime : PlotAxis::kSteps);
  if (svg.empty()) {
    return Report(invocation, absl::FailedPreconditionError(absl::StrCat(
                                  absl::StrJoin(flags.jobs, ", "), ": no loss and no accuracy is a number: ",
                                  "nothing to plot; `hooke metrics JOB` shows what was reported")));
  }
  if (absl::Status status = WriteNewFile(flags.svg, svg, flags.force); !status.ok()) return Report(invocation, status);
  *invocation.out << flags.svg << ": " << absl::StrJoin(flags.jobs, ", ") << " over " << flags.over << std::endl;
  return kSucceeded;
}

}  // namespace

void AddMetricsCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("metrics", "Show what a job has reached so far, or all points of its history");
  auto flags = std::make_shared<MetricsFlags>();
  command.Add("JOB", flags->job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command.Add("--csv", flags->csv, "Print all points as CSV instead of a table of the last ones");
  AddCoordinatorFlag(command, invocation);
  command.Footer(
      "A point is a report of a group, or an evaluation of the center. The coordinator keeps up to 512 of each: those\n"
      "of the last minute, and fewer of what is further back. docs/see.md says more.");
  command.Action([&invocation, flags] { return ShowMetrics(invocation, *flags); });
}

void AddPlotCommand(Command& program, Invocation& invocation) {
  Command& command =
      program.AddCommand("plot", "Draw the loss of jobs, and the accuracy of their centers, in one picture");
  auto flags = std::make_shared<PlotFlags>();
  command.Add("JOB", flags->jobs, "The jobs' ids, as `hooke jobs` lists them").Required().Type("");
  command.Add("--svg", flags->svg, "Write the picture to this file, as SVG").Required().NotEmpty().Type("FILE");
  command.Add("--over", flags->over, "What the picture is drawn over. Default: steps")
      .OneOf({"steps", "time"})
      .Type("steps|time");
  command.Add("--force", flags->force, "Replace a file of that name");
  AddCoordinatorFlag(command, invocation);
  command.Footer(
      "Of one job each group has a color; of several, each job. Dashed lines are the center's. Time counts from a "
      "job's\n"
      "first report.");
  command.Action([&invocation, flags] { return Plot(invocation, *flags); });
}

}  // namespace hooke
