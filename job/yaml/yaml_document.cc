#include "job/yaml/yaml_document.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "job/yaml/yaml_error.h"

namespace hooke {
namespace {

constexpr absl::string_view kBlanks = " \t\r\n";

// Detects UTF-16 and UTF-32 like yaml-cpp: by a byte order mark, or by zeros beside the first character.
bool IsUtf16Or32(absl::string_view text) {
  return absl::StartsWith(text, "\xfe\xff") || absl::StartsWith(text, "\xff\xfe") ||
         absl::StrContains(text.substr(0, 2), '\0');
}

// True if a quoted text begins at `pos`, after any anchor or tag, and does not end in its line. yaml-cpp accepts a
// quote that never ends if the file's last line has an end.
bool IsOpenQuote(absl::string_view text, size_t pos) {
  while (pos < text.size() && (text[pos] == '&' || text[pos] == '!')) {
    pos = std::min(text.find_first_of(kBlanks, pos), text.size());
    pos = std::min(text.find_first_not_of(kBlanks, pos), text.size());
  }
  if (pos >= text.size() || (text[pos] != '"' && text[pos] != '\'')) return false;
  const char quote = text[pos];
  for (size_t i = pos + 1; i < text.size() && text[i] != '\n' && text[i] != '\r'; ++i) {
    const absl::string_view two = text.substr(i, 2);
    const bool escapes =
        quote == '\'' ? two == "''" : two.size() == 2 && two[0] == '\\' && two[1] != '\n' && two[1] != '\r';
    if (escapes) {
      ++i;
    } else if (text[i] == quote) {
      return false;
    }
  }
  return true;
}

// Keeps only the lines where documents begin, and the line of the first unclosed quote.
class DocumentEvents : public YAML::EventHandler {
 public:
  // yaml-cpp's positions are byte positions only in UTF-8.
  explicit DocumentEvents(absl::string_view text) : text_(text), has_positions_(!IsUtf16Or32(text)) {}

  void OnDocumentStart(const YAML::Mark& mark) override { starts_.push_back(mark.line + 1); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    if (!has_positions_ || open_quote_ > 0 || mark.pos < 0) return;
    if (IsOpenQuote(text_, static_cast<size_t>(mark.pos))) open_quote_ = mark.line + 1;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  const std::vector<int>& starts() const { return starts_; }  // Lines where documents begin.
  int open_quote() const { return open_quote_; }              // Line of the first unclosed quote; 0: none.

 private:
  const absl::string_view text_;
  const bool has_positions_;
  std::vector<int> starts_;
  int open_quote_ = 0;
};

absl::Status Wrong(absl::string_view file, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", what));
}

absl::Status OpenQuoteError(absl::string_view file, int line) {
  return Wrong(file, line, "a quoted text does not end in its line; write the missing quote");
}

// Returns line `line` without its end, or "" if the text has fewer lines.
absl::string_view LineOf(absl::string_view text, int line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// Reads the text's events. Stops after two documents: in many binary files yaml-cpp finds documents forever without
// moving on.
void ReadEvents(const std::string& text, DocumentEvents& events) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  while (events.starts().size() < 2 && parser.HandleNextDocument(events)) {
  }
}

}  // namespace

absl::StatusOr<YAML::Node> LoadYamlDocument(absl::string_view text, absl::string_view file) {
  // yaml-cpp's positions do not count UTF-8's byte order mark.
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  const size_t nul = IsUtf16Or32(text) ? absl::string_view::npos : text.find('\0');
  if (nul != absl::string_view::npos) {
    const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(nul), '\n'));
    return Wrong(file, line, "is not a text: it has a NUL byte; save it as UTF-8");
  }
  const std::string copy(text);
  DocumentEvents events(copy);
  // yaml-cpp reports errors by exceptions, which are caught here.
  try {
    ReadEvents(copy, events);
    if (events.open_quote() > 0) return OpenQuoteError(file, events.open_quote());
    if (events.starts().size() > 1) {
      return Wrong(file, events.starts()[1], "a second YAML document begins; a job file describes one job");
    }
    return YAML::Load(copy);
  } catch (const YAML::Exception& error) {
    // After an unclosed quote, yaml-cpp takes text for quotes and quotes for text, so its message would mislead.
    if (events.open_quote() > 0) return OpenQuoteError(file, events.open_quote());
    const int line = error.mark.line + 1;
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", line, ":", error.mark.column + 1, ": ", YamlErrorText(error.msg, LineOf(copy, line))));
  }
}

}  // namespace hooke
