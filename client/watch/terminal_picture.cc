#include "client/watch/terminal_picture.h"

namespace hooke {

void TerminalPicture::Draw(const std::vector<std::string>& lines, size_t dim_from) {
  Erase();
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool dim = dim_from > 0 && i >= dim_from;
    out_ << (dim ? "\x1b[2m" : "") << lines[i] << (dim ? "\x1b[0m" : "") << "\n";
  }
  out_.flush();
  drawn_ = lines.size();
}

void TerminalPicture::Erase() {
  if (drawn_ > 0) out_ << "\x1b[" << drawn_ << "A\x1b[J";
  drawn_ = 0;
}

}  // namespace hooke
