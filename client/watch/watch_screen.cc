#include "client/watch/watch_screen.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"
#include "client/text/time_text.h"
#include "client/watch/terminal_picture.h"

namespace hooke {
namespace {

std::string BackText(absl::Time since, absl::Time now) {
  return absl::StrCat("coordinator back after ", DurationText(now - since));
}

class TerminalScreen : public WatchScreen {
 public:
  TerminalScreen(std::ostream& out, WatchViewOptions options) : picture_(out), options_(options) {}

  void Show(const v1::JobStatus& job, absl::Time now) override { picture_.Draw(RenderWatch(job, now, options_), 0); }

  void Away(const v1::JobStatus* job, absl::Time since, absl::Time now) override {
    if (job == nullptr) {
      picture_.Draw({CutToWidth(AwayText(since, now, options_.zone), options_.width)}, 0);
    } else {
      picture_.Draw(RenderAway(*job, since, now, options_), 1);
    }
  }

  // Does nothing, because the next Show draws the picture anew.
  void Back(absl::Time, absl::Time) override {}

 private:
  TerminalPicture picture_;
  const WatchViewOptions options_;
};

class PlainScreen : public WatchScreen {
 public:
  PlainScreen(std::ostream& out, const WatchLogOptions& options) : out_(out), zone_(options.zone), log_(options) {}

  void Show(const v1::JobStatus& job, absl::Time now) override {
    for (const std::string& line : log_.Lines(job, now)) out_ << line << "\n";
    out_.flush();
  }

  void Away(const v1::JobStatus*, absl::Time since, absl::Time now) override {
    out_ << log_.Stamped(now, now,
                         absl::StrCat("coordinator away since ", TimeText(since, now, zone_), "; trying again"))
         << std::endl;
  }

  void Back(absl::Time since, absl::Time now) override {
    out_ << log_.Stamped(now, now, BackText(since, now)) << std::endl;
  }

 private:
  std::ostream& out_;
  const absl::TimeZone zone_;
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

  void Away(const v1::JobStatus*, absl::Time since, absl::Time now) override {
    err_ << "hooke: coordinator away since " << TimeText(since, now, absl::LocalTimeZone()) << "; trying again"
         << std::endl;
  }

  void Back(absl::Time since, absl::Time now) override { err_ << "hooke: " << BackText(since, now) << std::endl; }

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
