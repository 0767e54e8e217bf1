#include "client/text/time_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hooke {
namespace {

// Returns the length of the RFC 3339 time at the start of `text`; 0 if there is none.
size_t TimeBytes(absl::string_view text) {
  constexpr absl::string_view kPattern = "dddd-dd-ddTdd:dd:dd";
  const auto is_digit = [text](size_t i) { return i < text.size() && absl::ascii_isdigit(text[i]); };
  size_t end = 0;
  for (; end < kPattern.size(); ++end) {
    if (kPattern[end] == 'd' ? !is_digit(end) : end >= text.size() || text[end] != kPattern[end]) return 0;
  }
  if (end < text.size() && text[end] == '.' && is_digit(end + 1)) {
    for (++end; is_digit(end);) ++end;
  }
  if (end < text.size() && text[end] == 'Z') return end + 1;
  const bool offset = end + 6 <= text.size() && (text[end] == '+' || text[end] == '-') && is_digit(end + 1) &&
                      is_digit(end + 2) && text[end + 3] == ':' && is_digit(end + 4) && is_digit(end + 5);
  return offset ? end + 6 : 0;
}

bool IsWordPart(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::string TimeText(absl::Time time, absl::Time now, absl::TimeZone zone) {
  const bool today = absl::ToCivilDay(time, zone) == absl::ToCivilDay(now, zone);
  return absl::FormatTime(today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", time, zone);
}

std::string WithTimeTexts(absl::string_view text, absl::Time now, absl::TimeZone zone) {
  std::string result;
  bool in_word = false;
  while (!text.empty()) {
    const size_t bytes = in_word ? 0 : TimeBytes(text);
    const bool word_goes_on = bytes < text.size() && IsWordPart(text[bytes]);
    absl::Time time;
    if (bytes > 0 && !word_goes_on && absl::ParseTime(absl::RFC3339_full, text.substr(0, bytes), &time, nullptr)) {
      absl::StrAppend(&result, TimeText(time, now, zone));
      text.remove_prefix(bytes);
      in_word = false;
      continue;
    }
    in_word = IsWordPart(text[0]);
    result.push_back(text[0]);
    text.remove_prefix(1);
  }
  return result;
}

std::string MillisecondsText(double milliseconds) {
  if (milliseconds < 0.1) return "<0.1 ms";
  return absl::StrFormat("%.*f ms", milliseconds < 9.995 ? 2 : milliseconds < 99.95 ? 1 : 0, milliseconds);
}

}  // namespace hooke
