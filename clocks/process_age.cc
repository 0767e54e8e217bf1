#include "clocks/process_age.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace hooke {

std::optional<absl::Duration> StartIn(absl::string_view stat, int64_t ticks_per_second) {
  // The second field is the program's name in parentheses, which may have spaces and parentheses itself. The start is
  // field 22. Among the fields behind the name, counted from 0, it is number 19.
  constexpr size_t kStart = 19;
  const size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos || ticks_per_second <= 0) return std::nullopt;
  const std::vector<absl::string_view> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  int64_t ticks = 0;
  if (fields.size() <= kStart || !absl::SimpleAtoi(fields[kStart], &ticks)) return std::nullopt;
  return absl::Seconds(1) * ticks / ticks_per_second;
}

absl::Duration ProcessAge() {
  const std::ifstream file("/proc/self/stat");
  std::ostringstream text;
  text << file.rdbuf();
  const std::optional<absl::Duration> start = StartIn(text.str(), sysconf(_SC_CLK_TCK));
  timespec now = {};
  if (!start.has_value() || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), absl::DurationFromTimespec(now) - *start);
}

}  // namespace hooke
