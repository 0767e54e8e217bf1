#include "client/history/history_svg.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/history/ticks.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

constexpr double kWidth = 860, kLeft = 70, kRight = 190, kPanelHeight = 240, kPanelGap = 62, kTop = 44;
constexpr size_t kLegendMax = 12;
// Colors that are told apart on white and on black, also by most color-blind people.
constexpr const char* kColors[] = {"#2f7ed8", "#e07b00", "#2a9d58", "#c2498f",
                                   "#8468c9", "#9a7b00", "#cc3d3d", "#2299a8"};

const char* ColorOf(const Curve& curve) { return kColors[curve.color % (sizeof kColors / sizeof kColors[0])]; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

void Widen(Range& range, double value) {
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

Range RangeOfX(const std::vector<Curve>& losses, const std::vector<Curve>& accuracies) {
  Range x;
  for (const std::vector<Curve>* curves : {&losses, &accuracies}) {
    for (const Curve& curve : *curves) {
      Widen(x, curve.points.front().first);
      Widen(x, curve.points.back().first);
    }
  }
  return x;
}

// Where a panel's values are on the page.
struct Panel {
  double top = 0;
  Ticks x, y;

  double PageX(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
  double PageY(double value) const { return top + kPanelHeight - (value - y.low) / (y.high - y.low) * kPanelHeight; }
};

void DrawAxes(const Panel& panel, absl::string_view title, absl::string_view x_title, std::string& svg) {
  const double right = kWidth - kRight, bottom = panel.top + kPanelHeight;
  absl::StrAppendFormat(&svg, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", kLeft, panel.top - 8,
                        XmlText(title));
  for (const double value : panel.y.values) {
    const double y = panel.PageY(value);
    absl::StrAppendFormat(&svg, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", kLeft, y, right);
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", kLeft - 6, y + 4,
                          TickText(panel.y, value));
  }
  for (const double value : panel.x.values) {
    const double x = panel.PageX(value);
    absl::StrAppendFormat(&svg, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, panel.top, bottom);
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, bottom + 16,
                          TickText(panel.x, value));
  }
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", (kLeft + right) / 2,
                        bottom + 34, XmlText(x_title));
}

void DrawCurves(const Panel& panel, const std::vector<Curve>& curves, std::string& svg) {
  for (const Curve& curve : curves) {
    absl::StrAppendFormat(&svg, "<path class=\"curve\" stroke=\"%s\"%s d=\"", ColorOf(curve),
                          curve.center ? " stroke-dasharray=\"6 3\"" : "");
    const char* command = "M";
    for (const auto& [x, y] : curve.points) {
      absl::StrAppendFormat(&svg, "%s%.1f %.1f", command, panel.PageX(x), panel.PageY(y));
      command = "L";
    }
    svg += "\"/>\n";
    // Evaluations of the center are few, so each gets a dot. So does a curve of one point, whose line would be
    // invisible.
    if (!curve.center && curve.points.size() > 1) continue;
    for (const auto& [x, y] : curve.points) {
      absl::StrAppendFormat(&svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", panel.PageX(x),
                            panel.PageY(y), ColorOf(curve));
    }
  }
}

void DrawLegend(const Panel& panel, const std::vector<Curve>& curves, std::string& svg) {
  const double x = kWidth - kRight + 14;
  size_t entries = 0;
  for (const Curve& curve : curves) entries += curve.label.empty() ? 0 : 1;
  size_t drawn = 0;
  for (const Curve& curve : curves) {
    if (curve.label.empty()) continue;
    const double y = panel.top + 10 + 18 * static_cast<double>(drawn);
    if (drawn == kLegendMax) {
      absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\">and %d more</text>\n", x, y + 4, entries - drawn);
      return;
    }
    absl::StrAppendFormat(&svg, "<path class=\"curve\" stroke=\"%s\" d=\"M%.1f %.1fh20\"/>", ColorOf(curve), x, y);
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 26, y + 4,
                          XmlText(CutToWidth(Printable(curve.label), 20)));
    ++drawn;
  }
}

// Divides the curves' seconds by a unit of time in which they are small numbers. Returns the axis's title, with the
// unit.
std::string ScaleTime(double longest, std::vector<Curve>& losses, std::vector<Curve>& accuracies) {
  const double unit = longest > 3 * 3600 ? 3600 : longest > 3 * 60 ? 60 : 1;
  for (std::vector<Curve>* curves : {&losses, &accuracies}) {
    for (Curve& curve : *curves) {
      for (auto& point : curve.points) point.first /= unit;
    }
  }
  return absl::StrCat("time since the first report, in ", unit == 3600 ? "hours" : unit == 60 ? "minutes" : "seconds");
}

std::string Title(const std::vector<PlottedJob>& jobs) {
  std::vector<std::string> names;
  names.reserve(jobs.size());
  for (const PlottedJob& job : jobs) names.push_back(Printable(job.job_id));
  return CutToWidth(absl::StrJoin(names, ", "), 90);
}

void Begin(double height, absl::string_view title, std::string& svg) {
  svg = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<title>%s</title>\n",
      kWidth, height, kWidth, height, XmlText(title));
  svg +=
      "<style>text{fill:#222}.head{font-size:15px;font-weight:bold}.name{font-weight:bold}.grid{stroke:#ddd}"
      ".curve{fill:none;stroke-width:1.6;stroke-linejoin:round}.page{fill:#fff}\n"
      "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#3a3a3a}.page{fill:#15171a}}</style>\n";
  absl::StrAppendFormat(&svg, "<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", kWidth, height);
  absl::StrAppendFormat(&svg, "<text class=\"head\" x=\"%.1f\" y=\"20\">%s</text>\n", kLeft, XmlText(title));
}

}  // namespace

std::string HistorySvg(const std::vector<PlottedJob>& jobs, PlotAxis axis) {
  std::vector<Curve> losses = LossCurves(jobs, axis), accuracies = AccuracyCurves(jobs, axis);
  if (losses.empty() && accuracies.empty()) return "";
  Range x = RangeOfX(losses, accuracies);
  std::string x_title = "optimizer steps";
  if (axis == PlotAxis::kTime) {
    x_title = ScaleTime(x.high, losses, accuracies);
    x = RangeOfX(losses, accuracies);
  }
  const double panels = (losses.empty() ? 0 : 1) + (accuracies.empty() ? 0 : 1);
  std::string svg;
  Begin(kTop + panels * (kPanelHeight + kPanelGap) - 16, Title(jobs), svg);
  Panel panel;
  panel.top = kTop;
  panel.x = RoundTicks(std::min(0.0, x.low), x.high, 6);
  for (const std::vector<Curve>* curves : {&losses, &accuracies}) {
    if (curves->empty()) continue;
    Range y;
    for (const Curve& curve : *curves) {
      for (const auto& point : curve.points) Widen(y, point.second);
    }
    panel.y = RoundTicks(y.low, y.high, 5);
    DrawAxes(panel, curves == &losses ? "loss" : "accuracy of the center, as a fraction", x_title, svg);
    DrawCurves(panel, *curves, svg);
    DrawLegend(panel, *curves, svg);
    panel.top += kPanelHeight + kPanelGap;
  }
  return svg + "</svg>\n";
}

std::string XmlText(absl::string_view text) {
  // Printable leaves valid UTF-8 without control characters.
  return absl::StrReplaceAll(Printable(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"\"", "&quot;"},
                                               {"'", "&apos;"},
                                               {"\xef\xbf\xbe", "\xef\xbf\xbd"},
                                               {"\xef\xbf\xbf", "\xef\xbf\xbd"}});
}

}  // namespace hooke
