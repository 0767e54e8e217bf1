#include "job/trace/profile_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// A machine whose clock shows `clock_ns` when the coordinator's clock shows 0.
struct Machine {
  std::string name;
  int64_t clock_ns = 0;
  int64_t error_ns = 0;  // -1: the offset is unknown.
};

v1::ReadProfileResponse Rank(uint32_t group, uint32_t rank, const Machine& machine, int64_t first_ns) {
  v1::ReadProfileResponse response;
  response.set_group(group);
  response.set_rank(rank);
  v1::RankProfile* profile = response.mutable_profile();
  profile->set_machine(machine.name);
  if (machine.error_ns >= 0) {
    profile->mutable_clock()->set_offset_ns(-machine.clock_ns);
    profile->mutable_clock()->set_error_ns(machine.error_ns);
  }
  for (int64_t i = 0; i < 3; ++i) {
    const auto begin = static_cast<uint64_t>(machine.clock_ns + first_ns + 1000 * i);
    v1::TraceEvent* phase = profile->add_events();
    phase->set_begin_ns(begin);
    phase->set_duration_ns(1000);
    phase->set_phase(v1::RankProgress::COLLECTIVE);
    phase->set_step(static_cast<uint64_t>(i));
    v1::TraceEvent* call = profile->add_events();
    call->set_track(1);
    call->set_begin_ns(begin + 100);
    call->set_duration_ns(500);
    call->set_operation(v1::ALL_REDUCE);
    call->set_bytes(64);
  }
  return response;
}

using Track = std::pair<int, int>;
std::map<Track, std::vector<nlohmann::json>> TracksOf(const std::string& text) {
  std::map<Track, std::vector<nlohmann::json>> tracks;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") tracks[{event.at("pid"), event.at("tid")}].push_back(event);
  }
  return tracks;
}

// The trace is valid JSON. In each track events are ordered and do not overlap.
TEST(ProfileTraceTest, TimeIsMonotonePerTrack) {
  const Machine machine{"m", 5000000, 10};
  const absl::StatusOr<Trace> trace =
      MakeTrace("job-1", {Rank(0, 0, machine, 700), Rank(0, 1, machine, 600), Rank(1, 0, machine, 650)}, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, 18u);
  EXPECT_EQ(trace->ranks, 3u);
  EXPECT_EQ(trace->machines, 1u);
  EXPECT_EQ(trace->error_ns, 0);
  const auto tracks = TracksOf(trace->json);
  EXPECT_EQ(tracks.size(), 6u);
  for (const auto& [track, events] : tracks) {
    double end = 0;
    for (const nlohmann::json& event : events) {
      EXPECT_GE(event.at("ts").get<double>(), end - 1e-6);
      end = event.at("ts").get<double>() + event.at("dur").get<double>();
    }
  }
  EXPECT_EQ(tracks.at({0, 0}).at(0).at("name"), "collective");
  EXPECT_EQ(tracks.at({0, 1}).at(2).at("name"), "all-reduce");
  EXPECT_EQ(tracks.at({0, 1}).at(0).at("args").at("bytes"), 64);
  EXPECT_NEAR(tracks.at({0, 1}).at(0).at("ts").get<double>(), 0.2, 1e-9);  // Rank 1 was first, at 600 ns.
  EXPECT_THAT(trace->json, HasSubstr("{\"name\":\"group 1 rank 0\"}"));
}

// Events of machines with clocks far apart are put on one clock, and the trace gives the error.
TEST(ProfileTraceTest, OneClock) {
  const absl::StatusOr<Trace> trace = MakeTrace(
      "job-1",
      {Rank(0, 0, {"a", 7000000000, 300}, 10000), Rank(1, 0, {"b", 90, 500}, 10400), Rank(2, 0, {"b", 90, 500}, 10500)},
      {});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->machines, 2u);
  EXPECT_EQ(trace->error_ns, 800);
  const auto tracks = TracksOf(trace->json);
  EXPECT_NEAR(tracks.at({0, 0}).at(0).at("ts").get<double>(), 0, 1e-9);
  EXPECT_NEAR(tracks.at({16384, 0}).at(0).at("ts").get<double>(), 0.4, 1e-9);
  EXPECT_NEAR(tracks.at({32768, 0}).at(0).at("ts").get<double>(), 0.5, 1e-9);
}

// Ranks of one machine share one clock, even if their workers measured different offsets.
TEST(ProfileTraceTest, MachineHasOneOffset) {
  v1::ReadProfileResponse worse = Rank(0, 1, {"a", 1000, 50}, 300);
  worse.mutable_profile()->mutable_clock()->set_offset_ns(123456);
  const absl::StatusOr<Trace> trace = MakeTrace("job-1", {Rank(0, 0, {"a", 1000, 20}, 200), worse}, {});
  ASSERT_TRUE(trace.ok());
  EXPECT_NEAR(TracksOf(trace->json).at({1, 0}).at(0).at("ts").get<double>(), 0.1, 1e-9);
}

// A machine with an unknown clock offset is left out if there are others. A single machine needs no offset.
TEST(ProfileTraceTest, UnknownClock) {
  const std::vector<v1::ReadProfileResponse> ranks = {Rank(0, 0, {"a", 50, 20}, 200), Rank(0, 1, {"b", 50, -1}, 300)};
  absl::StatusOr<Trace> trace = MakeTrace("job-1", ranks, {});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->ranks, 1u);
  EXPECT_EQ(trace->ranks_left_out, 1u);
  trace = MakeTrace("job-1", {ranks[1]}, {});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->ranks_left_out, 0u);
  const absl::Status none = MakeTrace("job-1", {v1::ReadProfileResponse()}, {}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("job-1"));
}

// Whatever numbers and bytes ranks send, the result is JSON.
TEST(ProfileTraceTest, SurvivesNonsense) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200; ++i) {
    std::vector<v1::ReadProfileResponse> ranks;
    for (int j = 0; j < 3; ++j) {
      v1::ReadProfileResponse& rank = ranks.emplace_back();
      rank.set_group(static_cast<uint32_t>(random()));
      rank.set_rank(static_cast<uint32_t>(random()));
      rank.mutable_profile()->set_machine(std::string(random() % 3, static_cast<char>(random())));
      rank.mutable_profile()->mutable_clock()->set_offset_ns(static_cast<int64_t>(random()));
      rank.mutable_profile()->mutable_clock()->set_error_ns(static_cast<int64_t>(random()));
      v1::TraceEvent* event = rank.mutable_profile()->add_events();
      event->set_begin_ns(random());
      event->set_duration_ns(random());
      event->set_track(static_cast<uint32_t>(random() % 3));
      event->set_phase(static_cast<v1::RankProgress::Phase>(random() % 100));
      event->set_operation(static_cast<v1::Operation>(random() % 100));
    }
    const absl::StatusOr<Trace> trace = MakeTrace("job\xff", ranks, {});
    if (trace.ok()) {
      EXPECT_TRUE(nlohmann::json::accept(trace->json));
    }
  }
}

v1::ReadStartsResponse OneStart() {
  v1::ReadStartsResponse starts;
  v1::StartTimes* start = starts.add_starts();
  start->set_incarnation(1);
  start->set_worker("w1");
  v1::LifeSpan* span = start->add_spans();
  span->set_what(v1::LifeSpan::PREPARED);
  span->set_begin_unix_us(5);
  span->set_duration_us(3);
  span = start->add_spans();
  span->set_what(v1::LifeSpan::LOADED);
  span->set_begin_unix_us(10);
  span->set_duration_us(2);
  return starts;
}

// The starts are on the ranks' clock, and the trace begins with what comes first. Arrows join the processes of a start.
TEST(ProfileTraceTest, WithStarts) {
  const absl::StatusOr<Trace> trace = MakeTrace("job-1", {Rank(0, 0, {"a", 7000000000, 20}, 14000)}, OneStart());
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->starts, 1u);
  EXPECT_EQ(trace->events, 6u);
  const nlohmann::json json = nlohmann::json::parse(trace->json);
  EXPECT_EQ(json.at("otherData").at("begin_unix_ns"), 5000);
  EXPECT_EQ(json.at("otherData").at("starts"), 1);
  std::string arrows;
  std::map<std::string, double> begins;
  for (const nlohmann::json& event : json.at("traceEvents")) {
    const std::string what = event.at("ph");
    if (what == "X") begins.emplace(event.at("name"), event.at("ts").get<double>());
    if (what != "X" && what != "M") arrows += what;
  }
  EXPECT_EQ(arrows, "stf");
  EXPECT_NEAR(begins.at("prepare"), 0, 1e-9);
  EXPECT_NEAR(begins.at("launch ranks"), 3, 1e-9);
  EXPECT_NEAR(begins.at("load program"), 5, 1e-9);
  EXPECT_NEAR(begins.at("collective"), 9, 1e-9);
}

// Before the first profile the trace has only the starts. If the only clock of the ranks is not known as the
// coordinator's, the trace has no starts.
TEST(ProfileTraceTest, StartsAlone) {
  absl::StatusOr<Trace> trace = MakeTrace("job-1", {}, OneStart());
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 0u);
  EXPECT_EQ(trace->starts, 1u);
  trace = MakeTrace("job-1", {Rank(0, 0, {"a", 50, -1}, 200)}, OneStart());
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events, 6u);
  EXPECT_EQ(trace->starts, 0u);
}

}  // namespace
}  // namespace hooke
