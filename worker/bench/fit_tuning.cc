#include "worker/bench/fit_tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace hooke {
namespace {

using Cell = std::vector<Measurement>;  // The measurements of all choices at one size.

const Measurement* Find(const Cell& cell, const Choice& way) {
  const auto found =
      std::find_if(cell.begin(), cell.end(), [&way](const Measurement& m) { return SameWay(m.choice, way); });
  return found == cell.end() ? nullptr : &*found;
}

// Returns the choice for a cell; nullopt if the default's time is not known.
std::optional<Choice> WinnerOf(const Cell& cell, const Choice& by_default, const std::optional<Choice>& before,
                               double margin) {
  const Measurement* own = Find(cell, by_default);
  if (own == nullptr) return std::nullopt;
  const Measurement& best = *std::min_element(
      cell.begin(), cell.end(), [](const Measurement& a, const Measurement& b) { return a.median_us < b.median_us; });
  const double near = best.median_us * (1 + margin);
  if (own->quarter_us <= near) return by_default;
  const Measurement* kept = before.has_value() ? Find(cell, *before) : nullptr;
  return kept != nullptr && kept->median_us <= near ? kept->choice : best.choice;
}

uint64_t Between(uint64_t smaller, uint64_t larger) {
  return static_cast<uint64_t>(std::sqrt(static_cast<double>(smaller) * static_cast<double>(larger)));
}

TuningRule RuleFor(const Topology& topology, const Measurement& what, const Choice& way) {
  TuningRule rule;
  rule.operation = what.operation;
  rule.where = topology.nodes > 1 ? TuningRule::Where::kSeveralNodes : TuningRule::Where::kOneNode;
  rule.values = what.shared ? TuningRule::Values::kArena : TuningRule::Values::kPrivate;
  rule.ranks_max = topology.ranks;
  rule.oversubscribed = topology.oversubscribed;
  rule.bytes_max = what.bytes;
  rule.algorithm = way.algorithm;
  rule.chunk_bytes = way.chunk_bytes;
  rule.drivers = way.drivers;
  return rule;
}

// Returns the rules for one operation on one kind of values.
std::vector<TuningRule> RulesFor(const Topology& topology, const std::map<uint64_t, Cell>& cells, double margin) {
  std::vector<TuningRule> rules;
  std::optional<Choice> before;
  // Number of rules to keep: all after them only repeat the defaults.
  size_t needed = 0;
  uint64_t bytes_before = 0;
  for (const auto& [bytes, cell] : cells) {
    const Measurement& what = cell.front();
    const Choice by_default = ChooseAlgorithm(topology, {what.operation, bytes, what.shared});
    const std::optional<Choice> winner = WinnerOf(cell, by_default, before, margin);
    if (!winner.has_value()) break;
    if (before.has_value() && SameWay(*before, *winner)) {
      rules.back().bytes_max = bytes;
    } else {
      if (!rules.empty()) rules.back().bytes_max = Between(bytes_before, bytes);
      rules.push_back(RuleFor(topology, what, *winner));
    }
    if (!SameWay(*winner, by_default)) needed = rules.size();
    before = winner;
    bytes_before = bytes;
  }
  rules.resize(needed);
  return rules;
}

}  // namespace

Tuning FitTuning(const Topology& topology, const std::vector<Measurement>& measurements, double margin) {
  Tuning tuning;
  for (Operation operation : kAllOperations) {
    for (bool shared : {true, false}) {
      std::map<uint64_t, Cell> cells;
      for (const Measurement& one : measurements) {
        if (one.operation == operation && one.shared == shared) cells[one.bytes].push_back(one);
      }
      const std::vector<TuningRule> rules = RulesFor(topology, cells, margin);
      tuning.rules.insert(tuning.rules.end(), rules.begin(), rules.end());
    }
  }
  return tuning;
}

}  // namespace hooke
