#include "client/watch/watch_screen.h"

#include <utility>
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

// A terminal with fewer lines shows no chart.
constexpr int kHeightForChart = 20;
constexpr int kChartHeight = 6;

class TerminalScreen : public WatchScreen {
 public:
  TerminalScreen(std::ostream& out, WatchViewOptions options, LossChart chart)
      : picture_(out), options_(options), chart_(std::move(chart)) {}

  void Show(const v1::JobStatus& job, absl::Time now) override {
    chart_.Add(job);
    WatchViewOptions above = options_;
    const std::vector<std::string> chart = MakeRoom(above);
    picture_.Draw(Joined(RenderWatch(job, now, above), chart), 0);
  }

  void Away(const v1::JobStatus* job, absl::Time since, absl::Time now) override {
    if (job == nullptr) {
      picture_.Draw({CutToWidth(AwayText(since, now, options_.zone), options_.width)}, 0);
    } else {
      WatchViewOptions above = options_;
      const std::vector<std::string> chart = MakeRoom(above);
      picture_.Draw(Joined(RenderAway(*job, since, now, above), chart), 1);
    }
  }

  // Does nothing, because the next Show draws the picture anew.
  void Back(absl::Time, absl::Time) override {}

 private:
  // Returns the lines of the chart, and takes their height from that of the picture above them.
  std::vector<std::string> MakeRoom(WatchViewOptions& above) const {
    if (options_.height < kHeightForChart) return {};
    std::vector<std::string> lines = chart_.Lines(options_.width, kChartHeight);
    above.height -= static_cast<int>(lines.size());
    return lines;
  }

  static std::vector<std::string> Joined(std::vector<std::string> lines, const std::vector<std::string>& chart) {
    lines.insert(lines.end(), chart.begin(), chart.end());
    return lines;
  }

  TerminalPicture picture_;
  const WatchViewOptions options_;
  LossChart chart_;
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

std::unique_ptr<WatchScreen> MakeTerminalScreen(std::ostream& out, WatchViewOptions options, LossChart chart) {
  return std::make_unique<TerminalScreen>(out, options, std::move(chart));
}

std::unique_ptr<WatchScreen> MakePlainScreen(std::ostream& out, WatchLogOptions options) {
  return std::make_unique<PlainScreen>(out, options);
}

std::unique_ptr<WatchScreen> MakeJsonScreen(std::ostream& out, std::ostream& err) {
  return std::make_unique<JsonScreen>(out, err);
}

}  // namespace hooke
