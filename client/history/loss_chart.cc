#include "client/history/loss_chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hooke {
namespace {

// A braille character has two columns of four dots. These are the bits of its dots, by column and row from above.
constexpr unsigned kDots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

// Returns U+2800 + `dots` as UTF-8.
std::string Braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

LossChart::LossChart(const std::vector<v1::HistoryPoint>& points) {
  for (const v1::HistoryPoint& point : points) {
    if (!point.has_group()) continue;
    Add(point.step(), point.loss());
    last_steps_[point.group()] = point.step();
  }
}

void LossChart::Add(const v1::JobStatus& job) {
  for (const v1::GroupStatus& group : job.groups()) {
    if (group.task() != v1::GroupStart::TRAIN || !group.has_progress() || group.progress().step() == 0) continue;
    uint64_t& last = last_steps_[group.group()];
    if (last == group.progress().step()) continue;
    last = group.progress().step();
    Add(last, group.progress().loss());
  }
}

void LossChart::Add(uint64_t step, double loss) {
  if (!std::isfinite(loss)) return;
  auto& [sum, count] = losses_[step];
  sum += loss;
  ++count;
  if (losses_.size() <= kStepsMax) return;
  // Every second step goes, but not the first and the last one.
  for (auto one = losses_.begin(); std::next(one) != losses_.end() && std::next(one, 2) != losses_.end();) {
    one = losses_.erase(std::next(one));
  }
}

std::vector<std::string> LossChart::Lines(int width, int height) const {
  constexpr int kLabel = 10;
  const int columns = width - kLabel;
  if (losses_.size() < kStepsMin || columns < 10 || height < 2) return {};
  const double first = static_cast<double>(losses_.begin()->first);
  const double span = static_cast<double>(losses_.rbegin()->first) - first;
  const size_t dots_wide = 2 * static_cast<size_t>(columns);
  std::vector<std::pair<double, uint32_t>> sums(dots_wide);
  for (const auto& [step, loss] : losses_) {
    const double place = (static_cast<double>(step) - first) / span * static_cast<double>(dots_wide - 1);
    auto& [sum, count] = sums[static_cast<size_t>(place)];
    sum += loss.first;
    count += loss.second;
  }
  std::vector<std::optional<double>> means(dots_wide);
  std::optional<double> low, high;
  for (size_t i = 0; i < dots_wide; ++i) {
    if (sums[i].second == 0) continue;
    const double mean = sums[i].first / sums[i].second;
    means[i] = mean;
    low = std::min(low.value_or(mean), mean);
    high = std::max(high.value_or(mean), mean);
  }
  const int dots_high = 4 * (height - 1);
  std::vector<std::vector<unsigned>> cells(static_cast<size_t>(height - 1),
                                           std::vector<unsigned>(static_cast<size_t>(columns)));
  for (size_t i = 0; i < dots_wide; ++i) {
    if (!means[i].has_value()) continue;
    const double up = *high > *low ? (*means[i] - *low) / (*high - *low) : 0.5;
    const auto row = static_cast<size_t>(std::lround((1 - up) * (dots_high - 1)));
    cells[row / 4][i / 2] |= kDots[i % 2][row % 4];
  }
  std::vector<std::string> lines;
  for (size_t row = 0; row < cells.size(); ++row) {
    std::string label;
    if (row == 0) label = absl::StrFormat("%.4g", *high);
    if (row + 1 == cells.size() && row > 0) label = absl::StrFormat("%.4g", *low);
    std::string& line = lines.emplace_back(absl::StrFormat("%9s ", label));
    for (const unsigned dots : cells[row]) line += Braille(dots);
  }
  lines.push_back(absl::StrFormat("%9s steps %d to %d", "loss,", losses_.begin()->first, losses_.rbegin()->first));
  return lines;
}

}  // namespace hooke
