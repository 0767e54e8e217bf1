#include "worker/report/start_spans.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

absl::Time At(int64_t us) { return absl::FromUnixMicros(1000000 + us); }

// Returns "DATA 100 ago, 50 long" for each span.
std::vector<std::string> Texts(const v1::RankBegun& begun) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(begun.spans_size()));
  for (const v1::RankSpan& span : begun.spans()) {
    texts.push_back(
        absl::StrCat(v1::LifeSpan::What_Name(span.what()), " ", span.ago_us(), " ago, ", span.duration_us(), " long"));
  }
  return texts;
}

// A program does something of its own before its first step. Its report has a span for each part of the way, and each
// span ends where the next one begins.
TEST(StartSpansTest, WholeWay) {
  StartSpans spans;
  spans.Begin(v1::LifeSpan::LOADED, At(0));
  spans.Begin(v1::LifeSpan::JOINED, At(100));
  spans.Begin(v1::LifeSpan::DATA, At(150));
  spans.Enter(v1::RankProgress::ATTACHING, At(200));
  spans.Begin(v1::LifeSpan::PROGRAM, At(250));
  spans.Enter(v1::RankProgress::COMPUTE, At(2250));
  spans.Enter(v1::RankProgress::COLLECTIVE, At(2260));
  spans.Enter(v1::RankProgress::COMPUTE, At(2270));
  EXPECT_THAT(Texts(spans.End(At(2290))),
              ElementsAre("LOADED 2290 ago, 100 long", "JOINED 2190 ago, 50 long", "DATA 2140 ago, 50 long",
                          "ATTACHED 2090 ago, 50 long", "PROGRAM 2040 ago, 2000 long", "FIRST_STEP 40 ago, 40 long"));
}

// After the first step has begun, phases change nothing. A clock that was set back gives empty spans, none that
// overlap.
TEST(StartSpansTest, NoSecondFirstStep) {
  StartSpans spans;
  spans.Enter(v1::RankProgress::STARTING, At(100));
  spans.Enter(v1::RankProgress::ATTACHING, At(50));
  spans.Enter(v1::RankProgress::COMPUTE, At(200));
  spans.Enter(v1::RankProgress::ATTACHING, At(210));
  spans.Enter(v1::RankProgress::EVALUATING, At(220));
  EXPECT_THAT(Texts(spans.End(At(300))), ElementsAre("ATTACHED 200 ago, 100 long", "FIRST_STEP 100 ago, 100 long"));
}

// A program that goes back and forth has a bounded report, which still ends with the first step.
TEST(StartSpansTest, IsBounded) {
  StartSpans spans;
  for (int i = 0; i < 100; ++i) spans.Begin(i % 2 == 0 ? v1::LifeSpan::DATA : v1::LifeSpan::MODEL, At(i));
  spans.Enter(v1::RankProgress::COMPUTE, At(200));
  const v1::RankBegun begun = spans.End(At(300));
  EXPECT_EQ(begun.spans_size(), 16);
  EXPECT_EQ(begun.spans(15).what(), v1::LifeSpan::FIRST_STEP);
}

}  // namespace
}  // namespace hooke
