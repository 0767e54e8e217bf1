#include "client/doctor/value_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hooke {
namespace {

constexpr size_t kLineMax = 200;

std::vector<absl::string_view> Lines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipWhitespace());
}

std::string Short(absl::string_view line) { return std::string(absl::StripAsciiWhitespace(line.substr(0, kLineMax))); }

}  // namespace

std::string SpaceText(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib < 1024) return absl::StrFormat("%.0f MiB", mib);
  return absl::StrFormat("%.1f GiB", mib / 1024);
}

std::string SecondsText(absl::Duration took) {
  const double seconds = absl::ToDoubleSeconds(took);
  return seconds < 1 ? absl::StrFormat("%.2f s", seconds) : absl::StrFormat("%.1f s", seconds);
}

std::string FirstLine(absl::string_view text) {
  const std::vector<absl::string_view> lines = Lines(text);
  return lines.empty() ? "no output" : Short(lines.front());
}

std::string LastLine(absl::string_view text) {
  const std::vector<absl::string_view> lines = Lines(text);
  return lines.empty() ? "no output" : Short(lines.back());
}

}  // namespace hooke
