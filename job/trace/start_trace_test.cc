#include "job/trace/start_trace.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

void Add(v1::LifeSpan::What what, int64_t begin_us, uint64_t duration_us, v1::StartTimes* start) {
  v1::LifeSpan* span = start->add_spans();
  span->set_what(what);
  span->set_begin_unix_us(begin_us);
  span->set_duration_us(duration_us);
}

v1::StartTimes* AddStart(uint32_t group, uint32_t incarnation, const std::string& worker,
                         v1::ReadStartsResponse& starts) {
  v1::StartTimes* start = starts.add_starts();
  start->set_group(group);
  start->set_incarnation(incarnation);
  start->set_worker(worker);
  return start;
}

// Returns "worker w1/group 0: prepare 100+50" for each slice, in microseconds.
std::vector<std::string> Texts(const StartTrace& trace) {
  std::vector<std::string> texts;
  texts.reserve(trace.slices.size());
  for (const StartSlice& slice : trace.slices) {
    std::string where = "?";
    for (const StartTrack& track : trace.tracks) {
      if (track.process == slice.process && track.track == slice.track) {
        where = absl::StrCat(track.process_name, "/", track.name);
      }
    }
    texts.push_back(absl::StrCat(where, ": ", slice.name, " ", slice.begin_ns / 1000, "+", slice.duration_ns / 1000));
  }
  return texts;
}

// A whole start: who did what. The whole comes before its parts, and what the launcher did lies between worker and
// rank.
TEST(StartTraceTest, WholeStart) {
  v1::ReadStartsResponse starts;
  v1::LifeSpan* submit = starts.add_submit();
  submit->set_what(v1::LifeSpan::SUBMIT);
  submit->set_begin_unix_us(900);
  submit->set_duration_us(100);
  v1::StartTimes* start = AddStart(3, 1, "w1", starts);
  start->set_waited_for("no slots");
  Add(v1::LifeSpan::QUEUED, 1000, 50, start);
  Add(v1::LifeSpan::STORED, 1050, 20, start);
  Add(v1::LifeSpan::PREPARED, 1070, 30, start);
  Add(v1::LifeSpan::FILES, 1070, 10, start);
  Add(v1::LifeSpan::LOADED, 1200, 40, start);
  Add(v1::LifeSpan::FIRST_STEP, 1240, 60, start);
  const StartTrace trace = TraceStarts(starts);
  EXPECT_EQ(trace.starts, 1u);
  EXPECT_THAT(Texts(trace),
              ElementsAre("group 3 rank 0/start: load program 1200+40", "group 3 rank 0/start: first step 1240+60",
                          "client/hooke submit: submit 900+100", "coordinator/group 3: group 3, start 1 1000+300",
                          "coordinator/group 3: queued 1000+50", "coordinator/group 3: store and send 1050+20",
                          "worker w1/group 3: prepare 1070+30", "worker w1/group 3: fetch files 1070+10",
                          "worker w1/group 3: launch ranks 1100+100"));
  std::vector<std::string> joined;
  for (const StartSlice& slice : trace.slices) {
    if (slice.arrow == 1) joined.push_back(slice.name);
    if (slice.name == "queued") {
      EXPECT_THAT(slice.arguments, Contains(Pair("waited_for", "no slots")));
    }
  }
  EXPECT_THAT(joined, ElementsAre("load program", "submit", "group 3, start 1", "prepare"));
}

// Each worker is one process, with a track for each group. The starts of a group share a track.
TEST(StartTraceTest, ManyStarts) {
  v1::ReadStartsResponse starts;
  Add(v1::LifeSpan::STORED, 100, 10, AddStart(0, 1, "b", starts));
  Add(v1::LifeSpan::STORED, 200, 10, AddStart(0, 2, "a", starts));
  Add(v1::LifeSpan::STORED, 150, 10, AddStart(1, 1, "b", starts));
  const StartTrace trace = TraceStarts(starts);
  EXPECT_EQ(trace.starts, 3u);
  EXPECT_THAT(
      Texts(trace),
      ElementsAre("coordinator/group 0: group 0, start 1 100+10", "coordinator/group 0: store and send 100+10",
                  "coordinator/group 0: group 0, start 2 200+10", "coordinator/group 0: store and send 200+10",
                  "coordinator/group 1: group 1, start 1 150+10", "coordinator/group 1: store and send 150+10"));
}

// Spans of a newer coordinator, or with times out of range, are left out.
TEST(StartTraceTest, BadSpans) {
  v1::ReadStartsResponse starts;
  v1::StartTimes* start = AddStart(0, 1, "w1", starts);
  Add(static_cast<v1::LifeSpan::What>(99), 100, 10, start);
  Add(v1::LifeSpan::WHAT_UNSPECIFIED, 100, 10, start);
  Add(v1::LifeSpan::LOADED, -1, 10, start);
  Add(v1::LifeSpan::LOADED, std::numeric_limits<int64_t>::max(), 10, start);
  Add(v1::LifeSpan::LOADED, 100, std::numeric_limits<uint64_t>::max(), start);
  *starts.add_submit() = start->spans(4);
  EXPECT_THAT(TraceStarts(starts).slices, IsEmpty());
  EXPECT_EQ(TraceStarts(starts).starts, 0u);
}

}  // namespace
}  // namespace hooke
