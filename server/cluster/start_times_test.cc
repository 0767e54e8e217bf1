// Shows how the times of a start come together, and that no statement of a client, worker or rank breaks them.

#include "server/cluster/start_times.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using What = v1::LifeSpan::What;

// Returns "QUEUED 100+50" for a span from 100 us that takes 50 us.
template <typename Spans>
std::vector<std::string> Texts(const Spans& spans) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(spans.size()));
  for (const v1::LifeSpan& span : spans) {
    texts.push_back(
        absl::StrCat(v1::LifeSpan::What_Name(span.what()), " ", span.begin_unix_us(), "+", span.duration_us()));
  }
  return texts;
}

v1::StartTimes Placed(int64_t waits_since_us, int64_t placed_us) {
  std::vector<PackedStart> starts;
  AddStart({3, 1, "w1", "no slots", waits_since_us, placed_us}, starts);
  return starts.at(0).Unpack();
}

v1::GroupStarted Started(uint64_t preparing_us, uint64_t files_us) {
  v1::GroupStarted started;
  started.set_preparing_us(preparing_us);
  started.set_files_us(files_us);
  return started;
}

void Add(What what, uint64_t ago_us, uint64_t duration_us, v1::RankBegun& begun) {
  v1::RankSpan* span = begun.add_spans();
  span->set_what(what);
  span->set_ago_us(ago_us);
  span->set_duration_us(duration_us);
}

// A whole start. Each span begins where the one before ends, but for the launcher's own time before LOADED.
TEST(StartTimesTest, WholeStart) {
  v1::StartTimes start = Placed(1000, 1500);
  EXPECT_EQ(start.waited_for(), "no slots");
  EXPECT_EQ(start.group(), 3u);
  AddPrepared(Started(300, 200), 2000, start);
  v1::RankBegun begun;
  Add(v1::LifeSpan::LOADED, 800, 300, begun);
  Add(v1::LifeSpan::FIRST_STEP, 500, 500, begun);
  EXPECT_TRUE(AddBegun(begun, 3000, start));
  EXPECT_THAT(Texts(start.spans()), ElementsAre("QUEUED 1000+500", "STORED 1500+200", "PREPARED 1700+300",
                                                "FILES 1700+200", "LOADED 2200+300", "FIRST_STEP 2500+500"));
  // Events that come twice change nothing.
  const v1::StartTimes before = start;
  AddPrepared(Started(300, 200), 4000, start);
  EXPECT_FALSE(AddBegun(begun, 4000, start));
  EXPECT_EQ(start.SerializeAsString(), before.SerializeAsString());
}

// A group that is placed at once, or of which nobody knows since when it waits, has no span QUEUED.
TEST(StartTimesTest, PlacedAtOnce) {
  EXPECT_THAT(Texts(Placed(1500, 1500).spans()), ElementsAre("STORED 1500+0"));
  EXPECT_THAT(Texts(Placed(0, 1500).spans()), ElementsAre("STORED 1500+0"));
  EXPECT_EQ(Placed(0, 1500).waited_for(), "");
}

// If a group has had many starts, the times of the first and of the last three are kept.
TEST(StartTimesTest, KeepsFour) {
  std::vector<PackedStart> starts;
  for (uint32_t i = 1; i <= 7; ++i) AddStart({3, i, "w1", "", 0, 1000}, starts);
  std::vector<uint32_t> kept;
  kept.reserve(starts.size());
  for (const PackedStart& start : starts) kept.push_back(start.incarnation());
  EXPECT_THAT(kept, ElementsAre(1, 5, 6, 7));
}

// A long reason is cut between two characters.
TEST(StartTimesTest, CutsTheReason) {
  std::vector<PackedStart> starts;
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "\xC3\xBC";
  AddStart({3, 1, "w1", "a" + umlauts, 1, 1000}, starts);
  EXPECT_EQ(starts[0].Unpack().waited_for(), "a" + umlauts.substr(0, 198));
}

// A time that a worker states counts only if it lies between the placement and now.
TEST(StartTimesTest, HappenedAt) {
  const v1::StartTimes start = Placed(0, 1500);
  EXPECT_EQ(HappenedAt(1700, 2000, start), 1700);
  EXPECT_EQ(HappenedAt(0, 2000, start), 2000);
  EXPECT_EQ(HappenedAt(1499, 2000, start), 2000);
  EXPECT_EQ(HappenedAt(2001, 2000, start), 2000);
  EXPECT_EQ(HappenedAt(-5, 2000, start), 2000);
}

// A worker or rank may state that a span took longer than the time since the placement. Then the span begins at the
// placement.
TEST(StartTimesTest, LongStatements) {
  v1::StartTimes start = Placed(0, 1500);
  AddPrepared(Started(~uint64_t{0}, ~uint64_t{0}), 2000, start);
  v1::RankBegun begun;
  Add(v1::LifeSpan::LOADED, kStatedUsMax, kStatedUsMax - 400, begun);
  EXPECT_TRUE(AddBegun(begun, 2500, start));
  EXPECT_THAT(Texts(start.spans()),
              ElementsAre("STORED 1500+0", "PREPARED 1500+500", "FILES 1500+500", "LOADED 1500+600"));
}

// Reports of ranks that break a rule change nothing.
TEST(StartTimesTest, RefusesBadReports) {
  std::vector<v1::RankBegun> bad(5);
  Add(v1::LifeSpan::QUEUED, 10, 5, bad[0]);                // A rank must not report this span.
  Add(static_cast<What>(99), 10, 5, bad[1]);               // No known span.
  Add(v1::LifeSpan::LOADED, 10, 11, bad[2]);               // The span ends in the future.
  Add(v1::LifeSpan::LOADED, kStatedUsMax + 1, 5, bad[3]);  // The span began too long ago.
  Add(v1::LifeSpan::LOADED, 10, 5, bad[4]);                // The span that follows begins before this one ends.
  Add(v1::LifeSpan::JOINED, 6, 5, bad[4]);
  bad.emplace_back();
  for (int i = 0; i < 17; ++i) Add(v1::LifeSpan::PROGRAM, 100, 0, bad.back());
  v1::StartTimes start = Placed(0, 1500);
  for (const v1::RankBegun& begun : bad) EXPECT_FALSE(AddBegun(begun, 2000, start)) << begun.ShortDebugString();
  EXPECT_THAT(Texts(start.spans()), ElementsAre("STORED 1500+0"));
}

// The span UPLOAD is the last part of the span SUBMIT. An upload that took longer than the whole, and durations that
// are 0 or too long, give no span.
TEST(StartTimesTest, Submit) {
  EXPECT_THAT(Texts(SubmitSpans(5000, 900, 300)), ElementsAre("SUBMIT 4100+900", "UPLOAD 4700+300"));
  EXPECT_THAT(Texts(SubmitSpans(5000, 900, 0)), ElementsAre("SUBMIT 4100+900"));
  EXPECT_THAT(Texts(SubmitSpans(5000, 900, 901)), ElementsAre("SUBMIT 4100+900"));
  EXPECT_THAT(SubmitSpans(5000, 0, 0), IsEmpty());
  EXPECT_THAT(SubmitSpans(5000, kStatedUsMax + 1, 0), IsEmpty());
}

}  // namespace
}  // namespace hooke
