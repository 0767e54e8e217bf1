#include "job/visible_text.h"

#include <gtest/gtest.h>

#include <string>

namespace hooke {
namespace {

// Any UTF-8 text that a person can read may be a path.
TEST(VisibleTextTest, TakesWhatCanBeRead) {
  for (const std::string text :
       {"a", " a b ", "/data/\xc3\xa4/\xe6\x95\xb0\xe6\x8d\xae", "\xf0\x9f\x98\x80", "\"'\\"}) {
    EXPECT_TRUE(IsVisibleText(text)) << text;
  }
}

// Refused: blanks of every width, control characters of one or two bytes, and bytes that are not UTF-8.
TEST(VisibleTextTest, RefusesWhatCannotBeSeen) {
  const std::string refused[] = {"",
                                 "     ",
                                 "\t",
                                 "a\nb",
                                 "a\x1b[31m",
                                 "a\x7f",
                                 std::string("a\0b", 3),
                                 "a\xc2\x9b",          // U+009B, which some terminals take for "\e[".
                                 "a\xe2\x80\xa8",      // U+2028.
                                 "\xef\xbb\xbf",       // U+FEFF.
                                 "\xe2\x80\x8b",       // U+200B.
                                 "\xc2\xa0",           // U+00A0.
                                 "\xff",               // This byte never occurs in UTF-8.
                                 "a\xc3",              // Cut short.
                                 "\xc0\xaf",           // Overlong "/".
                                 "\xed\xa0\x80",       // A surrogate.
                                 "\xf4\x90\x80\x80"};  // Above U+10FFFF.
  for (const std::string& text : refused) EXPECT_FALSE(IsVisibleText(text)) << Quoted(text);
}

// Everything that a terminal acts on is escaped, and all visible characters stay.
TEST(VisibleTextTest, EscapesWhatSteersATerminal) {
  EXPECT_EQ(Escaped("a \xc3\xa4"), "a \xc3\xa4");
  EXPECT_EQ(Escaped("\x1b[31mred\n"), "\\x1b[31mred\\n");
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\u{9b}");
  EXPECT_EQ(Escaped("\xef\xbb\xbfhpc\xe2\x80\xae"), "\\u{feff}hpc\\u{202e}");
  EXPECT_EQ(Escaped("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(Escaped("\"\\x1b\""), "\"\\x1b\"") << "escaped already";
}

// A long text is cut, but never within a character.
TEST(VisibleTextTest, CutsBetweenCharacters) {
  EXPECT_EQ(Quoted(std::string(59, 'a') + "\xc3\xa4" + "b"), "\"" + std::string(59, 'a') + "...\"");
  EXPECT_EQ(Quoted(std::string(60, 'a')), "\"" + std::string(60, 'a') + "\"");
  EXPECT_EQ(FirstBytes("a\xf0\x9f\x99\x82"
                       "b",
                       4),
            "a");
  EXPECT_EQ(FirstBytes("a\xf0\x9f\x99\x82"
                       "b",
                       5),
            "a\xf0\x9f\x99\x82");
  EXPECT_EQ(FirstBytes("ab", 2), "ab");
  EXPECT_EQ(FirstBytes(std::string(9, '\x80'), 8), std::string(5, '\x80')) << "no UTF-8";
}

// An enumeration has "and" before its last item.
TEST(VisibleTextTest, ListsItems) {
  EXPECT_EQ(ListText({"a"}), "a");
  EXPECT_EQ(ListText({"a", "b"}), "a and b");
  EXPECT_EQ(ListText({"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace hooke
