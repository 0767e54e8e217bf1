#include "client/text/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace hooke {
namespace {

// A peer's text cannot steer the terminal. That holds for C0 and C1 controls, and for marks that change the writing
// direction.
TEST(TerminalTextTest, ControlCharactersAreNotPrinted) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n\tc\x7f\u00e4"), "a [2Jb  c \u00e4");
  EXPECT_EQ(Printable("a\u009b2Jb"), "a 2Jb");
  EXPECT_EQ(Printable("a\u202eb\u2066c"), "a b c");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a b");
}

// Bytes that are not UTF-8 are replaced one by one. The text after them stays.
TEST(TerminalTextTest, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(Printable("a\xff\u00e4"), "a\ufffd\u00e4");
  EXPECT_EQ(Printable("a\xe2\x80"), "a\ufffd\ufffd");
  EXPECT_EQ(Printable("\xc0\x80"), "\ufffd\ufffd");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
}

// Widths are columns, not bytes or characters.
TEST(TerminalTextTest, Widths) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("group 0"), 7);
  EXPECT_EQ(DisplayWidth("w\u00f6rker"), 6);
  EXPECT_EQ(DisplayWidth("\u8bad\u7ec3"), 4);   // Two wide characters.
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);        // A letter and its accent.
  EXPECT_EQ(DisplayWidth("\U0001F680 ok"), 5);  // An emoji.
  EXPECT_EQ(DisplayWidth("\uff76\uff9e"), 2);   // Half-width kana.
  EXPECT_EQ(DisplayWidth("a\xff"), 2);
}

// A cut line ends in an ellipsis, is as wide as allowed, and never splits a character.
TEST(TerminalTextTest, Cut) {
  EXPECT_EQ(CutToWidth("group 0", 7), "group 0");
  EXPECT_EQ(CutToWidth("group 0", 6), "group\u2026");
  EXPECT_EQ(CutToWidth("group 0", 1), "\u2026");
  EXPECT_EQ(CutToWidth("group 0", 0), "");
  EXPECT_EQ(CutToWidth("group 0", -3), "");
  EXPECT_EQ(CutToWidth("\u8bad\u7ec3\u8bad", 5), "\u8bad\u7ec3\u2026");
  EXPECT_EQ(CutToWidth("\u8bad\u7ec3\u8bad", 4), "\u8bad\u2026");  // One column stays free, because the next character
                                                                   // needs two.
  EXPECT_EQ(CutToWidth("e\u0301e\u0301e\u0301", 2), "e\u0301\u2026");
}

// For any text and any width the result fits. A text that fits already stays unchanged.
TEST(TerminalTextTest, CutFitsAlways) {
  const std::string text = "w\u00f6rker \u8bad\u7ec3\u7ec4 e\u0301 \U0001F680 on site \xff end";
  for (int width = 0; width < 60; ++width) {
    const std::string cut = CutToWidth(text, width);
    EXPECT_LE(DisplayWidth(cut), width);
    EXPECT_EQ(cut == text, width >= DisplayWidth(text)) << width;
    if (width > 0 && cut != text) {
      EXPECT_TRUE(absl::EndsWith(cut, "\u2026")) << cut;
      EXPECT_GE(DisplayWidth(cut), width - 1) << cut;
    }
  }
}

}  // namespace
}  // namespace hooke
