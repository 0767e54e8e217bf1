#ifndef HOOKE_CLIENT_WATCH_TERMINAL_PICTURE_H_
#define HOOKE_CLIENT_WATCH_TERMINAL_PICTURE_H_

// A picture on a terminal that is drawn anew in place. Only one thread may use it.

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace hooke {

class TerminalPicture {
 public:
  // `out` must outlive the picture.
  explicit TerminalPicture(std::ostream& out) : out_(out) {}

  // Replaces the last picture. Lines from `dim_from` on are grey; 0: no line is grey. No line is wider than the
  // terminal: callers cut the lines first, because a cut here would count the escape sequences as columns.
  void Draw(const std::vector<std::string>& lines, size_t dim_from);

 private:
  // Moves the cursor to the picture's first line and clears from there.
  void Erase();

  std::ostream& out_;
  size_t drawn_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_TERMINAL_PICTURE_H_
