#include "client/watch_screen.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/job_text.h"
#include "client/listing.h"

namespace hooke {
namespace {

class TerminalScreen : public WatchScreen {
 public:
  TerminalScreen(std::ostream& out, WatchViewOptions options) : out_(out), options_(options) {}

  void Show(const v1::JobStatus& job, absl::Time now) override {
    const std::vector<std::string> lines = RenderWatch(job, now, options_);
    Erase();
    for (const std::string& line : lines) out_ << line << "\n";
    out_.flush();
    drawn_ = lines.size();
  }

  // Stays above the picture that is drawn next.
  void Say(const std::string& text) override {
    Erase();
    out_ << text << std::endl;
  }

 private:
  // Back to the picture's first line, and clear from there on.
  void Erase() {
    if (drawn_ > 0) out_ << "\x1b[" << drawn_ << "A\x1b[J";
    drawn_ = 0;
  }

  std::ostream& out_;
  const WatchViewOptions options_;
  size_t drawn_ = 0;
};

class PlainScreen : public WatchScreen {
 public:
  PlainScreen(std::ostream& out, WatchLogOptions options) : out_(out), log_(options) {}

  void Show(const v1::JobStatus& job, absl::Time now) override {
    for (const std::string& line : log_.Lines(job, now)) out_ << line << "\n";
    out_.flush();
  }

  void Say(const std::string& text) override { out_ << text << std::endl; }

 private:
  std::ostream& out_;
  WatchLog log_;
};

class JsonScreen : public WatchScreen {
 public:
  JsonScreen(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  void Show(const v1::JobStatus& job, absl::Time) override {
    std::string line = DumpJson(JobToJson(job));
    if (line == last_) return;
    out_ << line << std::endl;
    last_ = std::move(line);
  }

  void Say(const std::string& text) override { err_ << text << std::endl; }

 private:
  std::ostream& out_;
  std::ostream& err_;
  std::string last_;
};

}  // namespace

std::unique_ptr<WatchScreen> MakeTerminalScreen(std::ostream& out, WatchViewOptions options) {
  return std::make_unique<TerminalScreen>(out, options);
}

std::unique_ptr<WatchScreen> MakePlainScreen(std::ostream& out, WatchLogOptions options) {
  return std::make_unique<PlainScreen>(out, options);
}

std::unique_ptr<WatchScreen> MakeJsonScreen(std::ostream& out, std::ostream& err) {
  return std::make_unique<JsonScreen>(out, err);
}

}  // namespace hooke
