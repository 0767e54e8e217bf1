// The profile of a real job. Ranks record it, hooke-worker passes it on, hooke-server keeps it, and `hooke profile`
// shows it.

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kJobLimit = absl::Seconds(120);
constexpr int kRanks = 4;  // Two groups of two ranks.

class ProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cluster = Cluster::Start({});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 2000, 1).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
    job_.data = cluster_->folder();
    job_.model = "mlp";
    job_.learning_rate = 0.05;
  }

  nlohmann::json Profile(const std::string& id) const {
    const ProgramResult result = cluster_->Hooke({"profile", id, "--exact", "--output", "json"});
    EXPECT_EQ(result.status, 0) << result.output;
    return nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  }

  std::unique_ptr<Cluster> cluster_;
  JobText job_;
};

// A phase or a collective call in the trace, in microseconds.
struct Slice {
  std::string name;
  double begin = 0;
  double end = 0;
};

// Returns the trace's phases and collectives by rank and track, in the order of the file.
std::map<std::pair<int, int>, std::vector<Slice>> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(trace.is_discarded());
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  if (trace.is_discarded()) return tracks;
  EXPECT_EQ(trace["otherData"]["clock_error_us"], 0);
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "start" || event["cat"] == "server") continue;
    const double begin = event["ts"];
    tracks[{event["pid"], event["tid"]}].push_back({event["name"], begin, begin + event["dur"].get<double>()});
  }
  return tracks;
}

// Returns the spans of the starts in a trace, by the names of their process and track ("coordinator/group 0"), in the
// order of the file.
std::map<std::string, std::vector<Slice>> ReadStarts(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(trace.is_discarded());
  std::map<std::string, std::vector<Slice>> tracks;
  if (trace.is_discarded()) return tracks;
  std::map<uint64_t, std::string> processes;
  std::map<std::pair<uint64_t, int>, std::string> names;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    const auto process = event["pid"].get<uint64_t>();
    if (event["name"] == "process_name") processes[process] = event["args"]["name"];
    if (event["name"] == "thread_name") names[{process, event["tid"]}] = event["args"]["name"];
    if (event["ph"] != "X" || event["cat"] != "start") continue;
    const double begin = event["ts"];
    tracks[absl::StrCat(processes[process], "/", names[{process, event["tid"]}])].push_back(
        {event["name"], begin, begin + event["dur"].get<double>()});
  }
  return tracks;
}

// An exchange of a rank, as the rank or a server saw it.
struct SeenExchange {
  std::string server;  // The server that saw the exchange; empty: the rank saw it.
  std::string rank;    // "group G rank R"
  uint64_t sequence = 0;
  double begin = 0;
  double end = 0;
};

struct TraceOfExchanges {
  std::vector<SeenExchange> by_servers;
  // Each spans the phases of one exchange, from the begin of the first to the end of the last.
  std::vector<SeenExchange> by_ranks;
  size_t arrows = 0;  // The number of arrows' ends.
};

TraceOfExchanges ReadExchanges(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(trace.is_discarded());
  TraceOfExchanges exchanges;
  if (trace.is_discarded()) return exchanges;
  std::map<uint64_t, std::string> processes;
  std::map<std::pair<uint64_t, uint64_t>, std::string> tracks;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    const auto process = event["pid"].get<uint64_t>();
    const auto track = event["tid"].get<uint64_t>();
    if (event["name"] == "process_name") processes[process] = event["args"]["name"];
    if (event["name"] == "thread_name") tracks[{process, track}] = event["args"]["name"];
    if (event["name"] != "exchange") continue;
    if (event["ph"] != "X") {
      ++exchanges.arrows;
      continue;
    }
    const double begin = event["ts"];
    const double end = begin + event["dur"].get<double>();
    if (event["cat"] == "server") {
      EXPECT_LE(event["args"]["work_us"].get<double>() + event["args"]["wait_us"].get<double>(), end - begin + 0.001);
      EXPECT_GE(event["args"]["messages"], 1);
      exchanges.by_servers.push_back(
          {processes[process], tracks[{process, track}], event["args"]["sequence"], begin, end});
      continue;
    }
    const uint64_t step = event["args"]["step"];
    std::vector<SeenExchange>& by_ranks = exchanges.by_ranks;
    if (by_ranks.empty() || by_ranks.back().rank != processes[process] || by_ranks.back().sequence != step) {
      by_ranks.push_back({"", processes[process], step, begin, end});
    }
    by_ranks.back().end = end;
  }
  return exchanges;
}

// Checks that each exchange of a server lies within the rank's, on the one clock of this machine. The slices of the two
// ranks of a group are the shards of the two servers.
void CheckExchanges(const TraceOfExchanges& exchanges) {
  std::map<std::pair<std::string, uint64_t>, SeenExchange> of_ranks;
  for (const SeenExchange& seen : exchanges.by_ranks) of_ranks[{seen.rank, seen.sequence}] = seen;
  std::map<std::pair<std::string, std::string>, int> counts;  // By server and rank.
  for (const SeenExchange& seen : exchanges.by_servers) {
    const auto found = of_ranks.find({seen.rank, seen.sequence});
    ASSERT_NE(found, of_ranks.end()) << seen.rank << " has no exchange " << seen.sequence;
    EXPECT_GE(seen.begin, found->second.begin - 0.001) << seen.server << ", " << seen.rank << ", " << seen.sequence;
    EXPECT_LE(seen.end, found->second.end + 0.001) << seen.server << ", " << seen.rank << ", " << seen.sequence;
    ++counts[{seen.server, seen.rank}];
  }
  EXPECT_EQ(counts.size(), size_t{kRanks});
  // 93 steps, and an exchange after each eighth one.
  for (const auto& [who, count] : counts) EXPECT_GE(count, 11) << who.first << ", " << who.second;
  // An arrow there, and one back, with two ends each.
  EXPECT_EQ(exchanges.arrows, 4 * exchanges.by_servers.size());
}

// Returns the span of this name that begins at `from` or later; an empty one if there is none.
Slice SpanIn(const std::vector<Slice>& track, const std::string& name, double from) {
  for (const Slice& slice : track) {
    if (slice.name == name && slice.begin >= from) return slice;
  }
  ADD_FAILURE() << "no span \"" << name << "\" at " << from << " us or later";
  return {};
}

// Checks that the parts of a start follow one another, without a gap, from its begin to its end.
void CheckStart(std::map<std::string, std::vector<Slice>>& tracks, const std::string& worker, const Slice& whole) {
  // The tolerance in microseconds: the clocks of worker and coordinator differ, and some times are known only to 10 ms.
  constexpr double kSlack = 50000;
  const std::vector<Slice>&on_coordinator = tracks["coordinator/group 0"], &on_worker = tracks[worker + "/group 0"];
  std::vector<Slice> parts = {SpanIn(on_coordinator, "store and send", whole.begin)};
  if (parts[0].begin > whole.begin) parts.insert(parts.begin(), SpanIn(on_coordinator, "queued", whole.begin));
  parts.push_back(SpanIn(on_worker, "prepare", whole.begin));
  parts.push_back(SpanIn(on_worker, "launch ranks", whole.begin));
  for (const char* part :
       {"load program", "join ranks", "read data", "make model", "attach to servers", "first step"}) {
    parts.push_back(SpanIn(tracks["group 0 rank 0/start"], part, whole.begin));
  }
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_LE(parts[i].end, whole.end + kSlack) << parts[i].name;
    if (i > 0) {
      EXPECT_GE(parts[i].begin, parts[i - 1].end - kSlack) << parts[i].name;
    }
    sum += parts[i].end - parts[i].begin;
  }
  EXPECT_NEAR(parts.back().end, whole.end, 1);
  // The rank joins the others a second time before it attaches, which the list leaves out.
  EXPECT_NEAR(sum, whole.end - whole.begin, 0.25 * (whole.end - whole.begin) + kSlack);
}

// After a job's end, the profile counts each rank's all-reduce of every step, and their share of the time is plausible.
// The trace has one track of phases and one of collectives for each rank, all on one clock.
TEST_F(ProfileTest, OfAJobThatHasEnded) {
  const auto id = cluster_->Submit(ToYaml(job_));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto end = cluster_->AwaitEnd(*id, kJobLimit);
  ASSERT_TRUE(end.ok()) << end.status();
  ASSERT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason();

  const nlohmann::json all = Profile(*id)["all"];
  EXPECT_EQ(all["ranks"], kRanks);
  uint64_t all_reduces = 0;
  double share = 0;
  for (const nlohmann::json& row : all["collectives"]) {
    EXPECT_LE(row["min_us"], row["median_us"]);
    EXPECT_LE(row["median_us"], row["p99_us"]);
    EXPECT_LE(row["p99_us"], row["max_us"]);
    EXPECT_FALSE(row["algorithms"].empty()) << row;  // Every operation has an algorithm, even a barrier.
    share += row["step_share"].get<double>();
    if (row["operation"] == "all-reduce") all_reduces += row["calls"].get<uint64_t>();
  }
  // 3 epochs of floor(2000 / (4 ranks x 16 samples)) steps, and some calls for evaluation.
  EXPECT_GE(all_reduces, uint64_t{3} * 31 * kRanks);
  EXPECT_GT(share, 0.001);
  EXPECT_LT(share, 1.0);

  // The parts of each group's time add up to the whole. The ranks' numbers of a collective agree. Otherwise no
  // collective would be known on all ranks.
  const ProgramResult split = cluster_->Hooke({"profile", *id, "--steps", "--output", "json"});
  ASSERT_EQ(split.status, 0) << split.output;
  const nlohmann::json steps = nlohmann::json::parse(split.output)["steps"];
  ASSERT_EQ(steps.size(), 2u);
  for (const nlohmann::json& group : steps) {
    EXPECT_EQ(group["ranks"], kRanks / 2);
    EXPECT_GT(group["collectives"], 10) << group;
    EXPECT_GT(group["compute_share"], 0.01) << group;
    double all_shares = 0;
    for (const char* part : {"compute_share", "waiting_share", "collective_share", "exchange_share"}) {
      EXPECT_GE(group[part], 0) << part;
      all_shares += group[part].get<double>();
    }
    EXPECT_NEAR(all_shares, 1, 1e-6);
  }

  const std::string path = cluster_->folder() + "/trace.json";
  const ProgramResult shown = cluster_->Hooke({"profile", *id, "--trace", path});
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr(absl::StrCat(*id, ": 4 ranks of 2 groups, together ")));
  EXPECT_THAT(shown.output, HasSubstr("\nall-reduce"));
  const auto tracks = ReadTrace(path);
  ASSERT_EQ(tracks.size(), size_t{2} * kRanks);
  for (const auto& [track, slices] : tracks) {
    ASSERT_GT(slices.size(), 10u);
    for (size_t i = 1; i < slices.size(); ++i) EXPECT_GE(slices[i].begin, slices[i - 1].end - 0.001);
  }
  // The ranks of a group leave a barrier at almost the same time, so a common clock shows them close together.
  const std::vector<Slice>&rank_0 = tracks.at({0, 1}), &rank_1 = tracks.at({1, 1});
  EXPECT_EQ(rank_0.back().name, "barrier");
  EXPECT_EQ(rank_1.back().name, "barrier");
  EXPECT_GE(rank_0.back().end, rank_1.back().begin);
  EXPECT_GE(rank_1.back().end, rank_0.back().begin);

  const ProgramResult again = cluster_->Hooke({"profile", *id, "--trace", path});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.output, HasSubstr("the file exists already"));
}

// The trace has what the servers did in the exchanges, also after the job's end. A server that is away is missed with a
// note.
TEST_F(ProfileTest, ExchangesAtServers) {
  const auto id = cluster_->Submit(ToYaml(job_));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto end = cluster_->AwaitEnd(*id, kJobLimit);
  ASSERT_TRUE(end.ok()) << end.status();
  ASSERT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason();
  const std::string path = cluster_->folder() + "/trace.json";
  const ProgramResult shown = cluster_->Hooke({"profile", *id, "--trace", path});
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr(" exchanges at servers"));
  EXPECT_THAT(shown.output, Not(HasSubstr("has no exchanges")));
  CheckExchanges(ReadExchanges(path));

  cluster_->SignalServer(1, SIGKILL);
  ASSERT_TRUE(cluster_->AwaitServerEnd(1).ok());
  const ProgramResult without = cluster_->Hooke({"profile", *id, "--trace", path, "--force"});
  EXPECT_EQ(without.status, 0) << without.output;
  EXPECT_THAT(without.output, HasSubstr(absl::StrCat("the trace has no exchanges of server ",
                                                     cluster_->server_address(1), ": cannot be reached")));
  for (const SeenExchange& seen : ReadExchanges(path).by_servers) {
    EXPECT_EQ(seen.server, "server " + cluster_->server_address(0));
  }
}

// A running job has a profile some seconds after its first step, and the profile grows. Before that, `hooke profile`
// reports that there is none.
TEST_F(ProfileTest, OfAJobThatRuns) {
  EXPECT_THAT(cluster_->Hooke({"profile", "none-1"}).output, HasSubstr("no job none-1"));
  job_.epochs = kLongEpochs;
  const auto id = cluster_->Submit(ToYaml(job_));
  ASSERT_TRUE(id.ok()) << id.status();
  // Just after the submission there is no profile, unless the ranks were quicker.
  const ProgramResult early = cluster_->Hooke({"profile", *id});
  if (early.status != 0) {
    EXPECT_THAT(early.output, HasSubstr("has no profile yet"));
  }
  const auto calls = [&] {
    const ProgramResult result = cluster_->Hooke({"profile", *id, "--output", "json"});
    if (result.status != 0) return uint64_t{0};
    uint64_t sum = 0;
    const nlohmann::json profile = nlohmann::json::parse(result.output);
    for (const nlohmann::json& row : profile["all"]["collectives"]) {
      sum += row["calls"].get<uint64_t>();
    }
    return sum;
  };
  // Await evaluates the condition at each change of the job's status, and each evaluation asks for the profile.
  uint64_t first = 0;
  ASSERT_TRUE(cluster_->Await(*id, kJobLimit, [&](const v1::JobStatus&) { return (first = calls()) > 0; }).ok());
  EXPECT_TRUE(cluster_->Await(*id, kJobLimit, [&](const v1::JobStatus&) { return calls() > first; }).ok());
  EXPECT_EQ(cluster_->Hooke({"cancel", *id}).status, 0);
  EXPECT_EQ(cluster_->Hooke({"profile", *id}).status, 0);
}

// The trace shows how a group came to its first step, through client, coordinator, worker and rank. It shows the same
// for the group's second start, after a rank was killed. The first start takes as long as the job's status says.
TEST_F(ProfileTest, TraceOfASubmit) {
  job_.epochs = kLongEpochs;
  job_.groups = 1;
  const auto id = cluster_->Submit(ToYaml(job_));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto runs = [](uint32_t incarnation) {
    return [incarnation](const v1::JobStatus& job) {
      return job.groups(0).state() == v1::GROUP_STATE_RUNNING && job.groups(0).incarnation() == incarnation;
    };
  };
  const auto first = cluster_->Await(*id, kJobLimit, runs(1));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string path = cluster_->folder() + "/trace.json";
  const auto has_first_steps = [&](int64_t count) {
    return [&, count](const v1::JobStatus&) {
      cluster_->Hooke({"profile", *id, "--trace", path, "--force"});
      const std::vector<Slice> rank = ReadStarts(path)["group 0 rank 0/start"];
      return std::count_if(rank.begin(), rank.end(), [](const Slice& span) { return span.name == "first step"; }) ==
             count;
    };
  };
  // The rank's report of its first step comes right behind the progress that shows the step.
  ASSERT_TRUE(cluster_->Await(*id, kJobLimit, has_first_steps(1)).ok());
  const std::vector<pid_t> ranks = cluster_->RankPids(*id, 0);
  ASSERT_FALSE(ranks.empty());
  kill(ranks[0], SIGKILL);
  const auto again = cluster_->Await(*id, kJobLimit, runs(2));
  ASSERT_TRUE(again.ok()) << again.status();
  const std::string worker = absl::StrCat("worker ", first->groups(0).worker());

  ASSERT_TRUE(cluster_->Await(*id, kJobLimit, has_first_steps(2)).ok());
  EXPECT_EQ(cluster_->Hooke({"cancel", *id}).status, 0);
  std::map<std::string, std::vector<Slice>> tracks = ReadStarts(path);
  const Slice submit = SpanIn(tracks["client/hooke submit"], "submit", 0);
  EXPECT_EQ(submit.begin, 0);
  const Slice whole = SpanIn(tracks["coordinator/group 0"], "group 0, start 1", 0);
  EXPECT_NEAR(whole.begin, submit.end, 1);
  CheckStart(tracks, worker, whole);
  const double observed = 1000 * static_cast<double>(first->first_step_unix_ms() - first->submitted_unix_ms());
  EXPECT_NEAR(whole.end - whole.begin, observed, 500000);
  const Slice second = SpanIn(tracks["coordinator/group 0"], "group 0, start 2", whole.end);
  CheckStart(tracks, absl::StrCat("worker ", again->groups(0).worker()), second);
}

}  // namespace
}  // namespace hooke
