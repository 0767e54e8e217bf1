#include "client/text/terminal_text.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "job/utf8.h"

namespace hooke {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD.
constexpr char kEllipsis[] = "\xE2\x80\xA6";     // An ellipsis, one column wide.

struct Range {
  char32_t first, last;
};

template <size_t kCount>
bool IsIn(const Range (&ranges)[kCount], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const Range& range) { return code >= range.first && code <= range.last; });
}

// Unicode's East Asian Width W and F (UAX #11) by whole blocks. A partly wide block counts as wide: a line cut too
// early is better than one that wraps.
constexpr Range kWide[] = {
    {0x1100, 0x115F}, {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23F3},  {0x25FD, 0x25FE}, {0x2614, 0x2615},
    {0x2648, 0x2653}, {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},  {0x26AA, 0x26AB}, {0x26BD, 0x26BE},
    {0x26C4, 0x26C5}, {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},  {0x26F2, 0x26F5}, {0x26FA, 0x26FA},
    {0x26FD, 0x26FD}, {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},  {0x274C, 0x274E}, {0x2753, 0x2757},
    {0x2795, 0x2797}, {0x27B0, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B55},  {0x2E80, 0x303E}, {0x3041, 0xA4CF},
    {0xA960, 0xA97F}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},  {0xFE30, 0xFE6F}, {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x16FE0, 0x1B2FF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Marks that join the character before them, and invisible characters.
constexpr Range kZero[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F}, {0x0E34, 0x0E3A},
                           {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x2060, 0x2060},
                           {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};

// C0, DEL and C1; line and paragraph separators; marks, embeddings and isolates that change the writing direction.
constexpr Range kSteering[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},
                               {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};

int WidthOf(const Utf8Character& character) {
  if (!character.valid) return 1;
  if (IsIn(kZero, character.point)) return 0;
  return IsIn(kWide, character.point) ? 2 : 1;
}

// Returns the longest prefix of `text` that takes at most `width` columns.
absl::string_view StartOf(absl::string_view text, int width) {
  size_t end = 0;
  int columns = 0;
  while (end < text.size()) {
    const Utf8Character character = FirstCharacter(text.substr(end));
    columns += WidthOf(character);
    if (columns > width) break;
    end += character.bytes;
  }
  return text.substr(0, end);
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (!character.valid) {
      printable.append(kReplacement);
    } else if (IsIn(kSteering, character.point)) {
      printable.push_back(' ');
    } else {
      absl::StrAppend(&printable, text.substr(0, character.bytes));
    }
    text.remove_prefix(character.bytes);
  }
  return printable;
}

int DisplayWidth(absl::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    columns += WidthOf(character);
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string CutToWidth(absl::string_view text, int width) {
  if (width <= 0) return "";
  if (DisplayWidth(text) <= width) return std::string(text);
  return absl::StrCat(StartOf(text, width - 1), kEllipsis);
}

}  // namespace hooke
