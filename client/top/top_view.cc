#include "client/top/top_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "client/text/time_text.h"
#include "job/job_state.h"
#include "job/state_word.h"

namespace hooke {
namespace {

using Row = std::vector<std::string>;

struct Table {
  Row header;
  std::vector<Row> rows;
};

std::string NumberText(double value, int decimals = 0) {
  return std::isfinite(value) ? absl::StrFormat("%.*f", decimals, value) : "-";
}

std::string RateText(const std::optional<double>& rate) {
  if (!rate.has_value()) return "-";
  return *rate < 10 ? absl::StrFormat("%.1f", *rate) : absl::StrFormat("%.0f", *rate);
}

std::optional<GroupRates> RatesOfGroup(const ClusterRates& rates, const std::string& job, uint32_t group) {
  const auto found = rates.groups.find({job, group});
  return found == rates.groups.end() ? std::nullopt : std::optional<GroupRates>(found->second);
}

bool IsTraining(const v1::GroupStatus& group) {
  return group.state() == v1::GROUP_STATE_RUNNING && group.task() != v1::GroupStart::EVALUATE;
}

Row JobRow(const v1::JobStatus& job, const ClusterRates& rates, const ClusterLook& look, absl::TimeZone zone) {
  const absl::Time now = absl::FromUnixMillis(job.now_unix_ms());
  double samples = 0, loss = 0;
  int training = 0, with_loss = 0;
  std::optional<double> exchanges;
  for (const v1::GroupStatus& group : job.groups()) {
    if (!IsTraining(group) || HasEnded(job.state())) continue;
    ++training;
    if (std::isfinite(group.progress().samples_per_s())) samples += group.progress().samples_per_s();
    if (group.has_progress() && std::isfinite(group.progress().loss())) {
      loss += group.progress().loss();
      ++with_loss;
    }
    const std::optional<GroupRates> of_group = RatesOfGroup(rates, job.job_id(), group.group());
    if (of_group.has_value()) exchanges = exchanges.value_or(0) + of_group->exchanges_per_s;
  }
  const int64_t begin = job.started_unix_ms() != 0 ? job.started_unix_ms() : job.submitted_unix_ms();
  const absl::Time end = HasEnded(job.state()) ? absl::FromUnixMillis(job.ended_unix_ms()) : now;
  const bool accurate = job.has_center() && std::isfinite(job.center().accuracy());
  const std::optional<absl::Duration> left = TimeLeft(job);
  const bool explain = job.state() != v1::JOB_STATE_SUCCEEDED && job.state() != v1::JOB_STATE_RUNNING;
  return {Printable(job.job_id()),
          JobStateText(job.state()),
          DoneText(job),
          DurationText(end - absl::FromUnixMillis(begin)),
          left.has_value() ? DurationText(*left) : "-",
          HasEnded(job.state()) ? "-" : absl::StrCat(training, "/", job.spec().groups().count()),
          training > 0 ? NumberText(samples) : "-",
          RateText(exchanges),
          with_loss > 0 ? NumberText(loss / with_loss, 4) : "-",
          accurate ? PercentText(job.center().accuracy()) : "-",
          WithTimeTexts(Printable(explain ? job.reason() : SpecText(job.spec())), look.at, zone)};
}

Table JobsPart(const ClusterLook& look, const ClusterRates& rates, absl::TimeZone zone) {
  Table table;
  table.header = {"JOB", "STATE", "DONE", "TIME", "ETA", "GROUPS", "SAMPLES/S", "EXCH/S", "LOSS", "ACCURACY", "WHAT"};
  for (const bool ended : {false, true}) {
    for (const v1::JobStatus& job : look.jobs.jobs()) {
      if (HasEnded(job.state()) == ended) table.rows.push_back(JobRow(job, rates, look, zone));
    }
  }
  return table;
}

std::string PhaseText(const v1::GroupStatus& group) {
  if (!group.silences().empty()) return absl::StrCat("no answer from ", Printable(group.silences(0).what()));
  if (!group.has_progress()) return "-";
  const double seconds = group.progress().phase_seconds();
  return absl::StrCat(absl::AsciiStrToLower(v1::RankProgress::Phase_Name(group.progress().phase())),
                      seconds >= 3 ? absl::StrFormat(" for %.0f s", seconds) : "");
}

Table GroupsPart(const ClusterLook& look, const ClusterRates& rates) {
  Table table;
  table.header = {"GROUP", "STATE", "WORKER", "STEP", "STEPS/S", "SAMPLES/S", "EXCH/S", "LOSS", "PHASE"};
  for (const v1::JobStatus& job : look.jobs.jobs()) {
    if (HasEnded(job.state()) || HasNoGroup(job.state())) continue;
    for (const v1::GroupStatus& group : job.groups()) {
      const v1::RankProgress& progress = group.progress();
      const bool evaluates = group.task() == v1::GroupStart::EVALUATE;
      const std::optional<GroupRates> of_group =
          evaluates ? std::nullopt : RatesOfGroup(rates, job.job_id(), group.group());
      const std::string place = PlaceText(group);
      const bool known = group.has_progress() && !evaluates;
      table.rows.push_back(
          {absl::StrCat(Printable(job.job_id()), " ", evaluates ? "evaluation" : absl::StrCat(group.group())),
           GroupStateText(group.state()), place.empty() ? "-" : place,
           known ? absl::StrCat(StepText(group), "/", progress.steps_total()) : "-",
           of_group.has_value() ? RateText(of_group->steps_per_s) : "-",
           known ? NumberText(progress.samples_per_s()) : "-",
           of_group.has_value() ? RateText(of_group->exchanges_per_s) : "-",
           known ? NumberText(progress.loss(), 4) : "-",
           group.state() == v1::GROUP_STATE_RUNNING ? PhaseText(group) : Printable(group.reason())});
    }
  }
  return table;
}

std::string NodeState(const v1::NodeStatus& node, absl::Time now) {
  if (!node.alive())
    return absl::StrCat("silent for ", DurationText(now - absl::FromUnixMillis(node.last_heard_unix_ms())));
  return node.problem().empty() ? "alive" : "unusable";
}

std::string MebibytesText(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string SumText(const std::map<std::string, double>& sums, const std::string& name, int decimals) {
  const auto found = sums.find(name);
  return found == sums.end() ? "-" : NumberText(found->second, decimals);
}

std::pair<Table, Table> NodeParts(const ClusterLook& look, const ClusterRates& rates) {
  Table workers, servers;
  workers.header = {"WORKER", "STATE", "SITE", "SLOTS", "SAMPLES/S"};
  servers.header = {"SERVER", "STATE", "CORES", "EXCH/S", "P50", "P99", "CENTERS", "MEMORY", "DISK", "PROBLEM"};
  const auto answered = [](double milliseconds) { return milliseconds > 0 ? MillisecondsText(milliseconds) : "-"; };
  for (const v1::NodeStatus& node : look.nodes.nodes()) {
    const std::string state = NodeState(node, look.at);
    if (node.kind() == v1::NodeStatus::WORKER) {
      workers.rows.push_back({Printable(node.name()), state, Printable(node.site()),
                              absl::StrCat(node.slots_used(), "/", node.slots()),
                              SumText(rates.worker_samples, node.name(), 0)});
    } else {
      servers.rows.push_back(
          {Printable(node.name()), state, absl::StrFormat("%.2f", node.cores()),
           SumText(rates.server_exchanges, node.name(), 1), answered(node.exchanges().median_ms()),
           answered(node.exchanges().p99_ms()), absl::StrCat(uint64_t{node.centers()} + node.disk_centers()),
           MebibytesText(node.center_bytes()), MebibytesText(node.disk_bytes()), Printable(node.problem())});
    }
  }
  return {std::move(workers), std::move(servers)};
}

std::string SummaryText(const TopState& state, absl::Time now, absl::TimeZone zone) {
  int running = 0, waiting = 0, ended = 0, workers = 0, servers = 0;
  uint32_t slots = 0, used = 0;
  for (const v1::JobStatus& job : state.look.jobs.jobs()) {
    ++(HasEnded(job.state()) ? ended : HasNoGroup(job.state()) ? waiting : running);
  }
  for (const v1::NodeStatus& node : state.look.nodes.nodes()) {
    ++(node.kind() == v1::NodeStatus::WORKER ? workers : servers);
    if (!node.alive()) continue;
    slots += node.slots();
    used += node.slots_used();
  }
  return absl::StrCat(TimeText(now, now, zone), "  ", state.address, "  jobs: ", running, " running, ", waiting,
                      " waiting, ", ended + state.look.jobs.left_out(), " ended; workers: ", workers, ", ", used, "/",
                      slots, " slots in use; servers: ", servers);
}

void AddTable(Table table, size_t shown, std::vector<std::string>& lines) {
  if (table.rows.empty()) return;
  const size_t all = table.rows.size();
  if (shown < all) table.rows.resize(shown > 0 ? shown - 1 : 0);
  const size_t left_out = all - table.rows.size();
  table.rows.insert(table.rows.begin(), std::move(table.header));
  lines.emplace_back();
  for (const absl::string_view line : absl::StrSplit(FormatTable(table.rows), '\n', absl::SkipEmpty())) {
    lines.emplace_back(line);
  }
  if (left_out > 0 && shown > 0) lines.push_back(absl::StrCat("and ", left_out, " more"));
}

}  // namespace

std::vector<size_t> ShareRows(const std::vector<size_t>& wanted, size_t room) {
  size_t left = room;
  size_t hungry = 0;
  for (const size_t rows : wanted) {
    if (rows == 0) continue;
    left -= std::min<size_t>(left, 2);
    ++hungry;
  }
  std::vector<size_t> given(wanted.size(), 0);
  // Each pass gives an equal share to every table that wants more.
  while (left > 0 && hungry > 0) {
    const size_t share = std::max<size_t>(1, left / hungry);
    hungry = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const size_t more = std::min({share, left, wanted[i] - given[i]});
      given[i] += more;
      left -= more;
      if (given[i] < wanted[i]) ++hungry;
    }
  }
  return given;
}

std::string TopAwayText(const TopState& state, absl::Time now, absl::TimeZone zone) {
  return absl::StrCat("coordinator away since ", TimeText(state.away_since, now, zone),
                      "; trying again: ", Printable(state.trouble));
}

std::vector<std::string> RenderTop(const TopState& state, absl::Time now, const TopViewOptions& options) {
  const ClusterRates rates = RatesOf(state.before, state.look);
  std::vector<std::string> lines;
  if (state.away()) lines.push_back(TopAwayText(state, now, options.zone));
  lines.push_back(SummaryText(state, now, options.zone));
  std::pair<Table, Table> nodes = NodeParts(state.look, rates);
  std::vector<Table> tables = {JobsPart(state.look, rates, options.zone), GroupsPart(state.look, rates),
                               std::move(nodes.first), std::move(nodes.second)};
  std::vector<size_t> rows;
  rows.reserve(tables.size());
  for (const Table& table : tables) rows.push_back(table.rows.size());
  const auto height = static_cast<size_t>(std::max(3, options.height - 1));
  if (options.height > 0) rows = ShareRows(rows, height - lines.size());
  for (size_t i = 0; i < tables.size(); ++i) AddTable(std::move(tables[i]), rows[i], lines);
  if (options.height > 0 && lines.size() > height) lines.resize(height);
  if (options.width > 0) {
    for (std::string& line : lines) line = CutToWidth(line, options.width);
  }
  return lines;
}

nlohmann::ordered_json TopToJson(const TopState& state) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array(), nodes = jobs, rates = jobs;
  for (const v1::JobStatus& job : state.look.jobs.jobs()) jobs.push_back(JobToJson(job));
  for (const v1::NodeStatus& node : state.look.nodes.nodes()) nodes.push_back(NodeToJson(node));
  for (const auto& [group, of_group] : RatesOf(state.before, state.look).groups) {
    rates.push_back({{"job_id", group.first},
                     {"group", group.second},
                     {"steps_per_s", of_group.steps_per_s},
                     {"exchanges_per_s", of_group.exchanges_per_s}});
  }
  return {{"unix_ms", absl::ToUnixMillis(state.look.at)}, {"jobs", jobs}, {"nodes", nodes}, {"rates", rates}};
}

}  // namespace hooke
