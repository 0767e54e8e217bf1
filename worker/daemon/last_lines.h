#ifndef HOOKE_WORKER_DAEMON_LAST_LINES_H_
#define HOOKE_WORKER_DAEMON_LAST_LINES_H_

// Keeps the last lines that each rank of a group wrote, for the message about its end. Pure. Not thread-safe.

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

class LastLines {
 public:
  static constexpr size_t kLinesMax = 10;       // Lines that are kept of each rank.
  static constexpr size_t kBytesMax = 1500;     // Bytes that are kept of each rank.
  static constexpr size_t kLineBytesMax = 500;  // A longer line is cut.

  // Adds a line that a rank wrote. `who` names the rank, as TaggedLine::source does. Lines of blanks only are not kept.
  // Nor are lines that only underline another one, as in Python's tracebacks.
  void Add(const std::string& who, absl::string_view line);

  // Returns the lines of `who`, oldest first, with " | " between them; "" if there are none.
  std::string Of(const std::string& who) const;

 private:
  std::map<std::string, std::deque<std::string>> lines_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_LAST_LINES_H_
