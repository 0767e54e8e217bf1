#include "worker/daemon/last_lines.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

// Of each rank, the last ten lines that are not blank are kept.
TEST(LastLinesTest, KeepsTheLastOfEachRank) {
  LastLines lines;
  EXPECT_EQ(lines.Of("rank 0"), "");
  lines.Add("rank 1", "alone");
  for (int i = 0; i < 12; ++i) {
    lines.Add("rank 0", absl::StrCat("line ", i));
    lines.Add("rank 0", " \t");
  }
  EXPECT_EQ(lines.Of("rank 0"),
            "line 2 | line 3 | line 4 | line 5 | line 6 | line 7 | line 8 | line 9 | line 10 | line 11");
  EXPECT_EQ(lines.Of("rank 1"), "alone");
}

// Since 3.11 Python underlines lines of a traceback. These underlines are not kept.
TEST(LastLinesTest, LeavesUnderlinesOut) {
  LastLines lines;
  for (const char* line : {"    f(1, 0)", "    ^^^^^^^", "    return a / b", "           ~~^~~", "ValueError: a ^ b"}) {
    lines.Add("rank 0", line);
  }
  EXPECT_EQ(lines.Of("rank 0"), "    f(1, 0) |     return a / b | ValueError: a ^ b");
}

// Long lines are cut. Older lines are dropped when all lines together are too long. The last line always stays.
TEST(LastLinesTest, IsBounded) {
  LastLines lines;
  for (char c = 'a'; c < 'k'; ++c) lines.Add("rank 0", std::string(100000, c));
  const std::string kept = lines.Of("rank 0");
  EXPECT_LE(kept.size(), LastLines::kBytesMax + 3 * LastLines::kLinesMax);
  EXPECT_EQ(kept.back(), 'j');
  EXPECT_EQ(kept.find('a'), std::string::npos);
}

}  // namespace
}  // namespace hooke
