#include "job/visible_text.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/utf8.h"

namespace hooke {
namespace {

// True for the characters of C0 and C1, DEL, and Unicode's line and paragraph separators.
bool IsControl(char32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029;
}

// True for spaces of every width other than U+0020, and for format characters, which have no width. U+0020 is visible
// between words.
bool IsInvisible(char32_t point) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr Range kRanges[] = {
      {0xa0, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160}, {0x1680, 0x1680},  {0x180e, 0x180e},
      {0x2000, 0x200f}, {0x202a, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000},  {0x3164, 0x3164},
      {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
  for (const Range& range : kRanges) {
    if (point >= range.first && point <= range.last) return true;
  }
  return false;
}

}  // namespace

bool IsVisibleText(absl::string_view text) {
  bool visible = false;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    if (!character.valid || IsControl(character.point)) return false;
    visible = visible || (character.point != ' ' && !IsInvisible(character.point));
    text.remove_prefix(character.bytes);
  }
  return visible;
}

std::string Escaped(absl::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    const absl::string_view bytes = text.substr(0, character.bytes);
    if (!character.valid || character.point < 0x20 || character.point == 0x7f) {
      absl::StrAppend(&escaped, absl::CHexEscape(bytes));
    } else if (IsControl(character.point) || IsInvisible(character.point)) {
      absl::StrAppendFormat(&escaped, "\\u{%x}", static_cast<uint32_t>(character.point));
    } else {
      absl::StrAppend(&escaped, bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return escaped;
}

absl::string_view FirstBytes(absl::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  // A byte 10xxxxxx is inside a character. A character has at most three of them; more are no UTF-8.
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++i) --end;
  return text.substr(0, end);
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 60;
  if (text.size() <= kShown) return absl::StrCat("\"", Escaped(text), "\"");
  return absl::StrCat("\"", Escaped(FirstBytes(text, kShown)), "...\"");
}

std::string ListText(const std::vector<std::string>& items) {
  const std::string first = absl::StrJoin(items.begin(), items.end() - 1, ", ");
  return absl::StrCat(first, first.empty() ? "" : " and ", items.back());
}

}  // namespace hooke
