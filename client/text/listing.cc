#include "client/text/listing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/text/job_text.h"
#include "client/text/time_text.h"
#include "job/done_share.h"
#include "job/group_kinds.h"
#include "job/job_state.h"
#include "job/metric.h"
#include "job/state_word.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownOfId = 8;  // Characters of a server's identity, as many as in the coordinator's texts.
constexpr int kGpusColumn = 5;    // GPUS comes after SLOTS, if there are any.

// Returns the number for JSON. JSON has no NaN and no infinity, so these become null.
ordered_json Number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json MetricsToJson(const Metrics& metrics) {
  ordered_json json = ordered_json::object();
  for (const v1::Metric& metric : metrics) json[metric.name()] = Number(metric.value());
  return json;
}

std::string LowerName(absl::string_view name) { return absl::AsciiStrToLower(name); }

ordered_json ProgressToJson(const v1::RankProgress& progress) {
  ordered_json absent = ordered_json::array();
  for (const v1::AbsentServer& server : progress.absent_servers()) {
    absent.push_back({{"address", server.address()}, {"since_unix_ms", server.since_unix_ms()}});
  }
  return {{"step", progress.step()},
          {"steps_total", progress.steps_total()},
          {"epoch", Number(progress.epoch())},
          {"loss", Number(progress.loss())},
          {"metrics", MetricsToJson(progress.metrics())},
          {"samples_per_s", Number(progress.samples_per_s())},
          {"phase", LowerName(v1::RankProgress::Phase_Name(progress.phase()))},
          {"phase_seconds", Number(progress.phase_seconds())},
          {"compute_seconds", Number(progress.compute_seconds())},
          {"collective_seconds", Number(progress.collective_seconds())},
          {"exchange_seconds", Number(progress.exchange_seconds())},
          {"overlapped_seconds", Number(progress.overlapped_seconds())},
          {"exchanges", progress.exchanges()},
          {"exchange_failures", progress.exchange_failures()},
          {"absent_servers", absent}};
}

ordered_json GroupToJson(const v1::GroupStatus& group) {
  ordered_json silences = ordered_json::array();
  for (const v1::Silence& silence : group.silences()) {
    silences.push_back(
        {{"what", silence.what()}, {"since_unix_ms", silence.since_unix_ms()}, {"step", silence.step()}});
  }
  ordered_json parts = ordered_json::array();
  for (const v1::GroupPart& part : group.parts()) {
    parts.push_back({{"worker", part.worker()}, {"first_rank", part.first_rank()}, {"ranks", part.ranks()}});
  }
  return {{"group", group.group()},
          {"task", LowerName(v1::GroupStart::Task_Name(group.task()))},
          {"state", GroupStateText(group.state())},
          {"reason", group.reason()},
          {"worker", group.worker()},
          {"site", group.site()},
          {"parts", parts},
          {"incarnation", group.incarnation()},
          {"progress", group.has_progress() ? ProgressToJson(group.progress()) : ordered_json(nullptr)},
          {"silences", silences},
          {"slow", group.slow()},
          {"last_lines", std::vector<std::string>(group.last_lines().begin(), group.last_lines().end())}};
}

ordered_json KindsToJson(const v1::JobSpec& spec) {
  ordered_json kinds = ordered_json::array();
  for (const v1::GroupKind& kind : KindsOf(spec)) {
    kinds.push_back(
        {{"groups", kind.count()}, {"ranks", kind.ranks()}, {"site", kind.site()}, {"batch_size", kind.batch_size()}});
  }
  return kinds;
}

ordered_json SpecToJson(const v1::JobSpec& spec) {
  return {{"model", spec.model().name()},
          {"command", std::vector<std::string>(spec.command().arguments().begin(), spec.command().arguments().end())},
          {"priority", spec.priority()},
          {"owner", spec.owner()},
          {"preemptible", spec.preemptible()},
          {"files", spec.command().files().files()},
          {"file_bytes", spec.command().files().bytes()},
          {"epochs", spec.train().epochs()},
          {"batch_size", spec.train().batch_size()},
          {"groups", spec.groups().count()},
          {"ranks", spec.groups().ranks()},
          {"kinds", KindsToJson(spec)},
          {"averaging", LowerName(v1::AveragingSpec::Rule_Name(spec.averaging().rule()))},
          {"interval", spec.averaging().interval()},
          {"delay", spec.averaging().delay()},
          {"fragments", std::max<uint32_t>(spec.averaging().fragments(), 1)},
          {"compression", CompressionText(spec.averaging())},
          {"alpha", Number(spec.averaging().alpha())}};
}

std::string SizeText(uint64_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  return kib < 1024 ? absl::StrFormat("%.1f KiB", kib) : absl::StrFormat("%.1f MiB", kib / 1024);
}

// Example: "2 (1 on disk only), 1.2 MiB in memory, 3.4 MiB on disk".
std::string CentersText(const v1::NodeStatus& node) {
  const std::string on_disk = node.disk_centers() > 0 ? absl::StrCat(" (", node.disk_centers(), " on disk only)") : "";
  return absl::StrCat(uint64_t{node.centers()} + node.disk_centers(), on_disk, ", ", SizeText(node.center_bytes()),
                      " in memory, ", SizeText(node.disk_bytes()), " on disk");
}

// Returns a line that says what a server has answered lately; "" if that is nothing.
std::string AnswersText(const v1::NodeStatus& node) {
  const v1::ExchangeFigures& figures = node.exchanges();
  if (figures.messages_per_second() <= 0) return "";
  return absl::StrFormat("server %s answers %.1f messages/s, %.2f MB/s in, %.2f MB/s out, p50 %s, p99 %s\n",
                         Printable(node.name()), figures.messages_per_second(),
                         figures.received_bytes_per_second() / 1e6, figures.sent_bytes_per_second() / 1e6,
                         MillisecondsText(figures.median_ms()), MillisecondsText(figures.p99_ms()));
}

// Returns "none", "finish" or "now"; "" for a server.
std::string DrainName(const v1::NodeStatus& node) {
  if (node.kind() != v1::NodeStatus::WORKER) return "";
  return LowerName(absl::StripPrefix(v1::Drain_Name(node.drain()), "DRAIN_"));
}

// Examples: "alive", "unusable", "draining", "avoided", "only for a-1", "silent for 0:10, drained".
std::string NodeStateText(const v1::NodeStatus& node, absl::Time now) {
  std::vector<std::string> words;
  if (!node.alive()) {
    words.push_back(absl::StrCat("silent for ", DurationText(now - absl::FromUnixMillis(node.last_heard_unix_ms()))));
  } else if (!node.problem().empty()) {
    words.push_back("unusable");
  }
  if (node.drain() == v1::DRAIN_FINISH || node.drain() == v1::DRAIN_NOW) {
    words.push_back(node.slots_used() > 0 ? "draining" : "drained");
  }
  if (!node.avoided().empty()) words.push_back("avoided");
  if (!node.only_job().empty()) words.push_back(absl::StrCat("only for ", Printable(node.only_job())));
  return words.empty() ? "alive" : absl::StrJoin(words, ", ");
}

// "-" if there was no evaluation, or if it had no accuracy.
std::string AccuracyText(const v1::JobStatus& job) {
  const bool knows = job.has_center() && !std::isnan(job.center().accuracy());
  return knows ? PercentText(job.center().accuracy()) : "-";
}

// Returns what to note about a job that runs: which group is held, or else why no group of it runs. Otherwise returns
// the last setback of its center, a return of a part of it to a snapshot.
std::string RunningNote(const v1::JobStatus& job) {
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.state() == v1::GROUP_STATE_HELD) return absl::StrCat(GroupText(group), " is ", group.reason());
  }
  const auto any = [&job](v1::GroupState state) {
    return std::any_of(job.groups().begin(), job.groups().end(),
                       [state](const v1::GroupStatus& group) { return group.state() == state; });
  };
  const bool none_runs = !any(v1::GROUP_STATE_STARTING) && !any(v1::GROUP_STATE_RUNNING);
  if (none_runs && any(v1::GROUP_STATE_WAITING)) return job.reason();
  return job.setback().text();
}

}  // namespace

std::string DoneText(const v1::JobStatus& job) {
  if (job.state() == v1::JOB_STATE_SUCCEEDED) return "100 %";
  std::vector<GroupDone> groups;
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.task() == v1::GroupStart::EVALUATE) continue;
    groups.push_back({group.state(), group.incarnation(), group.has_progress() ? &group.progress() : nullptr});
  }
  const std::optional<double> done = DoneShare(groups, job.spec().groups().count());
  return done.has_value() ? absl::StrFormat("%.0f %%", std::floor(100 * *done)) : "-";
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (const std::vector<std::string>& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string table;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t padding = i + 1 < row.size() ? static_cast<size_t>(widths[i] - DisplayWidth(row[i]) + 2) : 0;
      absl::StrAppend(&line, row[i], std::string(padding, ' '));
    }
    absl::StrAppend(&table, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return table;
}

std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, absl::TimeZone zone) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "DONE", "TIME", "ACCURACY", "WHAT", "REASON"}};
  for (const v1::JobStatus& job : jobs.jobs()) {
    const int64_t begin = job.started_unix_ms() != 0 ? job.started_unix_ms() : job.submitted_unix_ms();
    const absl::Time end = HasEnded(job.state()) ? absl::FromUnixMillis(job.ended_unix_ms()) : now;
    const bool show_reason = job.state() != v1::JOB_STATE_SUCCEEDED && job.state() != v1::JOB_STATE_RUNNING;
    rows.push_back({Printable(job.job_id()), JobStateText(job.state()), DoneText(job),
                    DurationText(end - absl::FromUnixMillis(begin)), AccuracyText(job), SpecText(job.spec()),
                    WithTimeTexts(Printable(show_reason ? job.reason() : RunningNote(job)), now, zone)});
  }
  std::string table = FormatTable(rows);
  if (jobs.left_out() > 0)
    absl::StrAppend(&table, "and ", jobs.left_out(), jobs.left_out() == 1 ? " older job\n" : " older jobs\n");
  return table;
}

std::string NodesTable(const v1::ListNodesResponse& nodes, absl::Time now, absl::TimeZone zone) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "KIND", "STATE", "SITE", "SLOTS", "VERSION", "CORES", "CENTERS"}};
  const bool any_gpus = std::any_of(nodes.nodes().begin(), nodes.nodes().end(),
                                    [](const v1::NodeStatus& node) { return node.gpus() > 0; });
  if (any_gpus) rows[0].insert(rows[0].begin() + kGpusColumn, "GPUS");
  std::string problems, answers;
  for (const v1::NodeStatus& node : nodes.nodes()) {
    const bool worker = node.kind() == v1::NodeStatus::WORKER;
    rows.push_back({Printable(node.name()), LowerName(v1::NodeStatus::Kind_Name(node.kind())), NodeStateText(node, now),
                    worker ? Printable(node.site()) : "-",
                    worker ? absl::StrCat(node.slots_used(), "/", node.slots(), " used") : "-",
                    Printable(node.version()), worker ? "-" : absl::StrFormat("%.2f", node.cores()),
                    worker ? "-" : CentersText(node)});
    if (any_gpus) rows.back().insert(rows.back().begin() + kGpusColumn, worker ? absl::StrCat(node.gpus()) : "-");
    if (!node.problem().empty() && node.alive()) {
      absl::StrAppend(&problems, "server ", Printable(node.server_id().substr(0, kShownOfId)), " ",
                      Printable(node.problem()), "\n");
    }
    if (!worker && node.alive()) absl::StrAppend(&answers, AnswersText(node));
    if (!node.avoided().empty()) {
      absl::StrAppend(&problems, "worker ", Printable(node.name()), " is avoided ",
                      WithTimeTexts(Printable(node.avoided()), now, zone), "\n");
    }
  }
  return absl::StrCat(FormatTable(rows), answers, problems);
}

ordered_json JobToJson(const v1::JobStatus& job) {
  ordered_json groups = ordered_json::array();
  for (const v1::GroupStatus& group : job.groups()) groups.push_back(GroupToJson(group));
  ordered_json notices = ordered_json::array();
  for (const v1::Notice& notice : job.notices())
    notices.push_back({{"unix_ms", notice.unix_ms()}, {"text", notice.text()}});
  ordered_json servers = ordered_json::array();
  for (const std::string& server : job.servers()) servers.push_back(server);
  ordered_json center = nullptr;
  if (job.has_center()) {
    center = {{"step", job.center().step()},
              {"epoch", Number(job.center().epoch())},
              {"accuracy", Number(job.center().accuracy())},
              {"loss", Number(job.center().loss())},
              {"samples", job.center().samples()},
              {"metrics", MetricsToJson(job.center().metrics())}};
  }
  ordered_json setback = nullptr;
  if (job.has_setback()) setback = {{"unix_ms", job.setback().unix_ms()}, {"text", job.setback().text()}};
  const std::optional<absl::Duration> left = TimeLeft(job);
  return {{"job_id", job.job_id()},
          {"name", job.name()},
          {"state", JobStateText(job.state())},
          {"reason", job.reason()},
          {"queue_position",
           job.state() == v1::JOB_STATE_QUEUED ? ordered_json(job.queue_position()) : ordered_json(nullptr)},
          {"submitted_unix_ms", job.submitted_unix_ms()},
          {"started_unix_ms", job.started_unix_ms()},
          {"first_step_unix_ms", job.first_step_unix_ms()},
          {"ended_unix_ms", job.ended_unix_ms()},
          {"now_unix_ms", job.now_unix_ms()},
          {"eta_seconds", left.has_value() ? Number(absl::ToDoubleSeconds(*left)) : ordered_json(nullptr)},
          {"center", center},
          {"groups", groups},
          {"servers", servers},
          {"notices", notices},
          {"setback", setback},
          {"spec", SpecToJson(job.spec())}};
}

ordered_json NodeToJson(const v1::NodeStatus& node) {
  ordered_json interfaces = ordered_json::array();
  for (const v1::NodeInterface& one : node.interfaces()) {
    interfaces.push_back({{"name", one.name()}, {"address", one.address()}, {"megabits", one.megabits()}});
  }
  ordered_json groups = ordered_json::array();
  for (const v1::NodeGroup& group : node.groups()) {
    groups.push_back({{"job_id", group.job_id()}, {"group", group.group()}, {"ranks", group.ranks()}});
  }
  return {{"name", node.name()},
          {"kind", LowerName(v1::NodeStatus::Kind_Name(node.kind()))},
          {"site", node.site()},
          {"slots", node.slots()},
          {"slots_used", node.slots_used()},
          {"groups", groups},
          {"alive", node.alive()},
          {"last_heard_unix_ms", node.last_heard_unix_ms()},
          {"version", node.version()},
          {"center_bytes", node.center_bytes()},
          {"centers", node.centers()},
          {"disk_centers", node.disk_centers()},
          {"disk_bytes", node.disk_bytes()},
          {"cores", Number(node.cores())},
          {"exchanges",
           {{"messages_per_second", Number(node.exchanges().messages_per_second())},
            {"received_bytes_per_second", Number(node.exchanges().received_bytes_per_second())},
            {"sent_bytes_per_second", Number(node.exchanges().sent_bytes_per_second())},
            {"median_ms", Number(node.exchanges().median_ms())},
            {"p99_ms", Number(node.exchanges().p99_ms())}}},
          {"snapshot_age_seconds", Number(node.snapshot_age_seconds())},
          {"server_id", node.server_id()},
          {"problem", node.problem()},
          {"interfaces", interfaces},
          {"mpi", node.mpi()},
          {"drain", DrainName(node)},
          {"avoided", node.avoided()},
          {"only_job", node.only_job()},
          {"gpus", node.gpus()}};
}

std::string DumpJson(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

}  // namespace hooke
