#include "job/trace/server_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/trace/profile_trace.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kCompute = v1::RankProgress::COMPUTE;
constexpr auto kExchange = v1::RankProgress::EXCHANGE;

struct Phase {
  v1::RankProgress::Phase phase = kCompute;
  uint64_t step = 0;
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

// The machine's clock is `clock_us` ahead of the coordinator's; nullopt: nobody knows.
v1::ReadProfileResponse Rank(uint32_t group, const std::string& machine, std::optional<int64_t> clock_us,
                             const std::vector<Phase>& phases) {
  v1::ReadProfileResponse rank;
  rank.set_group(group);
  rank.mutable_profile()->set_machine(machine);
  if (clock_us.has_value()) {
    rank.mutable_profile()->mutable_clock()->set_offset_ns(-1000 * *clock_us);
    rank.mutable_profile()->mutable_clock()->set_error_ns(2000);
  }
  for (const Phase& phase : phases) {
    v1::TraceEvent& event = *rank.mutable_profile()->add_events();
    event.set_phase(phase.phase);
    event.set_step(phase.step);
    event.set_begin_ns(static_cast<uint64_t>(1000 * (phase.begin_us + clock_us.value_or(0))));
    event.set_duration_ns(static_cast<uint64_t>(1000 * (phase.end_us - phase.begin_us)));
  }
  return rank;
}

v1::ServedExchange Exchange(uint32_t group, uint64_t sequence, int64_t begin_us, int64_t end_us) {
  v1::ServedExchange exchange;
  exchange.set_group(group);
  exchange.set_sequence(sequence);
  exchange.set_incarnation(1);
  exchange.set_begin_ns(static_cast<uint64_t>(1000 * begin_us));
  exchange.set_duration_ns(static_cast<uint64_t>(1000 * (end_us - begin_us)));
  exchange.set_work_ns(3000);
  exchange.set_wait_ns(4000);
  exchange.set_messages(2);
  exchange.set_received_bytes(500);
  exchange.set_sent_bytes(400);
  return exchange;
}

// Times of the exchanges are by the server's clock.
ExchangesOfServer Server(const std::string& address, const std::string& machine, std::optional<int64_t> clock_us,
                         const std::vector<v1::ServedExchange>& exchanges) {
  v1::ReadExchangesResponse answer;
  answer.set_machine(machine);
  if (clock_us.has_value()) {
    answer.mutable_clock()->set_offset_ns(-1000 * *clock_us);
    answer.mutable_clock()->set_error_ns(3000);
  }
  for (const v1::ServedExchange& exchange : exchanges) *answer.add_exchanges() = exchange;
  return {address, answer};
}

// Steps 7 and 8 of a rank that exchanges after each, and the start of step 9. It waits for its answers in a second
// phase, as ranks do.
const std::vector<Phase> kTwoSteps = {{kCompute, 6, 1000, 1100}, {kExchange, 7, 1100, 1120}, {kExchange, 7, 1120, 1200},
                                      {kCompute, 7, 1200, 1300}, {kExchange, 8, 1300, 1320}, {kExchange, 8, 1320, 1400},
                                      {kCompute, 8, 1400, 1500}};

struct Line {
  std::string process;
  std::string track;
  double ts = 0;
  nlohmann::json json;
};

// Returns the lines of servers' spans and arrows, with the names of their process and track.
std::vector<Line> LinesOf(const Trace& trace) {
  std::map<uint64_t, std::string> processes;
  std::map<std::pair<uint64_t, uint64_t>, std::string> tracks;
  std::vector<Line> lines;
  const nlohmann::json json = nlohmann::json::parse(trace.json);
  for (const nlohmann::json& event : json.at("traceEvents")) {
    const uint64_t process = event.at("pid"), track = event.at("tid");
    if (event.at("name") == "process_name") processes[process] = event.at("args").at("name");
    if (event.at("name") == "thread_name") tracks[{process, track}] = event.at("args").at("name");
    if (event.value("cat", "") != "server") continue;
    lines.push_back({processes.at(process), tracks.at({process, track}), event.at("ts"), event});
  }
  return lines;
}

// A server's exchange is a span of its process, on the clock of the ranks, with arrows from the rank's exchange and to
// its next phase. Exchanges before and after the ranks' events are left out.
TEST(ServerTraceTest, SpansAndArrows) {
  const std::vector<ExchangesOfServer> servers = {
      Server("s:1", "m", 50, {Exchange(0, 5, 100, 1049), Exchange(0, 7, 1160, 1240), Exchange(0, 9, 1551, 1560)})};
  const absl::StatusOr<Trace> trace = MakeTrace("job-1", {Rank(0, "m", 50, kTwoSteps)}, {}, servers);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->exchanges, 1u);
  EXPECT_EQ(trace->machines, 1u);
  EXPECT_EQ(trace->error_ns, 0);
  EXPECT_THAT(trace->notes, IsEmpty());
  const std::vector<Line> lines = LinesOf(*trace);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].process, "server s:1");
  EXPECT_EQ(lines[0].track, "group 0 rank 0");
  EXPECT_DOUBLE_EQ(lines[0].ts, 110);  // The exchange begins at 1110, and the trace at 1000.
  EXPECT_EQ(lines[0].json.at("dur"), 80);
  EXPECT_EQ(lines[0].json.at("args"), (nlohmann::json{{"sequence", 7},
                                                      {"start", 1},
                                                      {"messages", 2},
                                                      {"received_bytes", 500},
                                                      {"sent_bytes", 400},
                                                      {"work_us", 3},
                                                      {"wait_us", 4}}));
  const std::vector<std::string> kinds = {"s", "f", "s", "f"};
  const std::vector<double> times = {100, 110, 189.999, 200};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i + 1].json.at("ph"), kinds[i]);
    EXPECT_NEAR(lines[i + 1].ts, times[i], 1e-6);
    EXPECT_EQ(lines[i + 1].process, i == 0 || i == 3 ? "group 0 rank 0" : "server s:1");
  }
  EXPECT_EQ(lines[1].json.at("id"), lines[2].json.at("id"));
  EXPECT_EQ(lines[3].json.at("id"), lines[4].json.at("id"));
  EXPECT_NE(lines[1].json.at("id"), lines[3].json.at("id"));
}

struct ArrowCase {
  const char* what = nullptr;
  uint64_t sequence = 0;
  int64_t begin_us = 0;
  int64_t end_us = 0;
  int64_t error_us = 0;
  std::optional<int64_t> from_us = {};
  std::optional<int64_t> to_us = {};
};

// An arrow joins an exchange to the phase of its own sequence, and to the next phase only if the rank waited for it.
TEST(ServerTraceTest, Arrows) {
  const v1::ReadProfileResponse rank = Rank(0, "m", 0, kTwoSteps);
  const CommonClock clock = PlaceEvents({&rank, 1});
  const std::vector<ArrowCase> cases = {
      {"within the first phase", 7, 1110, 1190, 0, 1100, 1200},
      {"within the second one", 8, 1330, 1400, 0, 1320, 1400},
      {"the rank went on before", 7, 1110, 1250, 0, 1100, {}},
      {"after the phase, as with a delay", 7, 1210, 1250, 0, 1120, {}},
      {"before any phase of its own", 8, 1110, 1190, 0, {}, {}},
      {"too early", 7, 1090, 1190, 0, {}, {}},
      {"too early, as far as clocks tell", 7, 1090, 1190, 10, 1100, 1200},
      {"too late, as far as clocks tell", 7, 1110, 1205, 5, 1100, 1200},
      {"no such phase", 12, 1110, 1190, 0, {}, {}},
  };
  for (const ArrowCase& one : cases) {
    const v1::ServedExchange exchange = Exchange(0, one.sequence, one.begin_us, one.end_us);
    const ExchangeArrows arrows = ArrowsOf({0, 1000 * one.begin_us, &exchange}, clock.events, 1000 * one.error_us);
    const auto begin = [](const PlacedEvent* phase) {
      return phase == nullptr ? std::nullopt : std::make_optional(phase->begin_ns / 1000);
    };
    EXPECT_EQ(begin(arrows.from), one.from_us) << one.what;
    EXPECT_EQ(begin(arrows.to), one.to_us) << one.what;
  }
}

// Servers on other machines are put on the coordinator's clock, and the trace's error counts theirs.
TEST(ServerTraceTest, OtherMachines) {
  const std::vector<v1::ReadProfileResponse> ranks = {Rank(0, "a", 50, kTwoSteps), Rank(1, "b", 7000, kTwoSteps)};
  const std::vector<ExchangesOfServer> servers = {Server("s:1", "c", 90, {Exchange(1, 7, 1200, 1240)}),
                                                  Server("s:2", "b", std::nullopt, {Exchange(1, 7, 8110, 8130)})};
  const absl::StatusOr<Trace> trace = MakeTrace("job-1", ranks, {}, servers);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->machines, 3u);
  EXPECT_EQ(trace->error_ns, 5000);
  std::vector<std::pair<std::string, double>> spans;
  for (const Line& line : LinesOf(*trace)) {
    if (line.json.at("ph") == "X") spans.emplace_back(line.process, line.ts);
  }
  EXPECT_THAT(spans, ElementsAre(std::pair<std::string, double>("server s:1", 110),
                                 std::pair<std::string, double>("server s:2", 110)));
}

// A server whose clock is not known is left out, and so is each that has not answered. Notes say why. Servers with the
// same reason share a note.
TEST(ServerTraceTest, NotesOnMissingServers) {
  const std::vector<ExchangesOfServer> servers = {
      Server("s:1", "elsewhere", std::nullopt, {Exchange(0, 7, 1110, 1190)}),
      {"s:2", absl::NotFoundError("no")},
      {"s:3", absl::UnimplementedError("")},
      {"s:4", absl::NotFoundError("no")},
      {"s:5", absl::UnavailableError("cannot be reached: Connection refused")},
      {"s:6", absl::DeadlineExceededError("Deadline Exceeded")},
      Server("s:7", "elsewhere", std::nullopt, {})};
  for (const std::optional<int64_t> clock_us : {std::optional<int64_t>(50), std::optional<int64_t>()}) {
    const absl::StatusOr<Trace> trace = MakeTrace("job-1", {Rank(0, "m", clock_us, kTwoSteps)}, {}, servers);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->events, kTwoSteps.size());
    EXPECT_EQ(trace->exchanges, 0u);
    const std::string none = "the trace has no exchanges of server";
    EXPECT_THAT(trace->notes, ElementsAre(none + " s:3: an older version, which records none",
                                          none + " s:5: cannot be reached: Connection refused",
                                          none + " s:1: its clock is not known yet; try again in some seconds",
                                          none + " s:6: no answer in time",
                                          none + "s s:2, s:4: none of this job is in memory there"));
    EXPECT_EQ(nlohmann::json::parse(trace->json).at("otherData").at("notes").size(), 5u);
  }
}

// A trace shows servers' exchanges only between the first and the last event of the ranks. So without profiles and
// starts of ranks there is no trace.
TEST(ServerTraceTest, NoRanksNoExchanges) {
  const std::vector<ExchangesOfServer> servers = {Server("s:1", "m", 0, {Exchange(0, 7, 1110, 1190)})};
  EXPECT_EQ(MakeTrace("job-1", {}, {}, servers).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Whatever numbers and bytes servers send, the result is JSON.
TEST(ServerTraceTest, SurvivesNonsense) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<v1::ServedExchange> exchanges(3);
    for (v1::ServedExchange& exchange : exchanges) {
      exchange.set_group(static_cast<uint32_t>(random()));
      exchange.set_rank(static_cast<uint32_t>(random()));
      exchange.set_begin_ns(random());
      exchange.set_duration_ns(random());
      exchange.set_sequence(random());
      exchange.set_work_ns(random());
    }
    v1::ReadProfileResponse rank = Rank(0, "m", 0, kTwoSteps);
    rank.mutable_profile()->mutable_events(3)->set_begin_ns(random());
    rank.mutable_profile()->mutable_events(4)->set_duration_ns(random());
    rank.mutable_profile()->mutable_clock()->set_offset_ns(static_cast<int64_t>(random()));
    ExchangesOfServer server = Server("s:\xff", std::string(1, static_cast<char>(random())), 0, exchanges);
    server.answer->mutable_clock()->set_offset_ns(static_cast<int64_t>(random()));
    const absl::StatusOr<Trace> trace = MakeTrace("job-1", {&rank, 1}, {}, {&server, 1});
    ASSERT_TRUE(trace.ok());
    EXPECT_FALSE(nlohmann::json::parse(trace->json, nullptr, false).is_discarded());
  }
}

}  // namespace
}  // namespace hooke
