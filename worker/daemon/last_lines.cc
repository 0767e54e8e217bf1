#include "worker/daemon/last_lines.h"

#include "absl/strings/str_join.h"
#include "worker/daemon/outbox.h"

namespace hooke {

void LastLines::Add(const std::string& who, absl::string_view line) {
  // Python underlines a part of a traceback's line with "^", and from 3.11 on with "~", too.
  if (line.find_first_not_of(" \t\r^~") == absl::string_view::npos) return;
  std::deque<std::string>& kept = lines_[who];
  kept.push_back(CleanLine(line, kLineBytesMax));
  size_t bytes = 0;
  for (const std::string& one : kept) bytes += one.size();
  while (kept.size() > kLinesMax || bytes > kBytesMax) {
    bytes -= kept.front().size();
    kept.pop_front();
  }
}

std::string LastLines::Of(const std::string& who) const {
  const auto found = lines_.find(who);
  return found == lines_.end() ? "" : absl::StrJoin(found->second, " | ");
}

}  // namespace hooke
