#include "client/text/time_text.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

absl::Time At(const std::string& text) {
  absl::Time time;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) << text;
  return time;
}

const absl::Time kNow = At("2026-11-23T12:00:00Z");

// On the day of `now` the text has only the time. On any other day it also has the date. Both are in the reader's time
// zone.
TEST(TimeTextTest, DateOnlyWhereTheDayDiffers) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  EXPECT_EQ(TimeText(At("2026-11-23T04:54:46Z"), kNow, utc), "04:54:46");
  EXPECT_EQ(TimeText(At("2026-11-22T23:59:59Z"), kNow, utc), "2026-11-22 23:59:59");
  EXPECT_EQ(TimeText(At("2026-11-24T00:00:00Z"), kNow, utc), "2026-11-24 00:00:00");
  const absl::TimeZone east = absl::FixedTimeZone(2 * 3600);
  EXPECT_EQ(TimeText(At("2026-11-22T23:30:00Z"), kNow, east), "01:30:00") << "today in that zone";
  EXPECT_EQ(TimeText(At("2026-11-23T22:30:00Z"), kNow, east), "2026-11-24 00:30:00") << "tomorrow in that zone";
}

// Times inside a text are replaced. Text that only looks like a time stays.
TEST(TimeTextTest, TimesInsideText) {
  const absl::TimeZone east = absl::FixedTimeZone(3600);
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", ""},
      {"no time here", "no time here"},
      {"silent since 2026-11-23T04:54:42Z, at step 7", "silent since 05:54:42, at step 7"},
      {"2026-11-23T04:54:42.123Z group 0: x", "05:54:42 group 0: x"},
      {"(2026-11-20T04:54:42Z)", "(2026-11-20 05:54:42)"},
      {"from 2026-11-23T04:54:42Z to 2026-11-23T04:54:43+00:00.", "from 05:54:42 to 05:54:43."},
      {"2026-11-23T04:54:42.123456789+02:00", "03:54:42"},
      {"2026-11-23T04:54:42", "2026-11-23T04:54:42"},
      {"2026-13-23T04:54:42Z", "2026-13-23T04:54:42Z"},
      {"2026-11-23T04:54:42Zx", "2026-11-23T04:54:42Zx"},
      {"x2026-11-23T04:54:42Z", "x2026-11-23T04:54:42Z"},
      {"2026-11-23T04:54:4", "2026-11-23T04:54:4"},
      {"2026-11-23T04:54:42.", "2026-11-23T04:54:42."},
      {"2026-11-23T04:54:42.Z", "2026-11-23T04:54:42.Z"},
  };
  for (const auto& one : cases) EXPECT_EQ(WithTimeTexts(one.text, kNow, east), one.expected);
}

// A timestamp that is cut off anywhere, as in a peer's shortened text, stays as it is.
TEST(TimeTextTest, AnyCutOfATime) {
  const std::string text = "a 2026-11-23T04:54:42.5+01:00 b";
  for (size_t i = 0; i < text.size() - 2; ++i) {
    const std::string cut = text.substr(0, i);
    EXPECT_EQ(WithTimeTexts(cut, kNow, absl::UTCTimeZone()), cut);
  }
  EXPECT_EQ(WithTimeTexts(text, kNow, absl::UTCTimeZone()), "a 03:54:42 b");
}

TEST(TimeTextTest, Milliseconds) {
  EXPECT_EQ(MillisecondsText(0.05), "<0.1 ms");
  EXPECT_EQ(MillisecondsText(0.426), "0.43 ms");
  EXPECT_EQ(MillisecondsText(9.996), "10.0 ms");
  EXPECT_EQ(MillisecondsText(34.56), "34.6 ms");
  EXPECT_EQ(MillisecondsText(1234.5678), "1235 ms");
}

}  // namespace
}  // namespace hooke
