#include "worker/data/division.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using Ranges = std::vector<Range>;

uint64_t StepSamples(const std::vector<GroupShare>& groups) {
  uint64_t samples = 0;
  for (const GroupShare& group : groups) samples += group.samples();
  return samples;
}

// Steps that the group has made in this part.
uint64_t StepsIn(const Division::Part& part, const GroupShare& group) {
  return std::clamp(group.last_step, part.first_step, part.first_step + part.steps) - part.first_step;
}

// Returns the positions at the places `places` of the list `list`.
Ranges PositionsAt(const Ranges& list, const Ranges& places) {
  Ranges positions;
  auto from = list.begin();
  uint64_t before = 0;  // How many positions of `list` lie before the range at `from`.
  for (Range place : places) {
    while (place.begin < place.end) {
      while (before + from->size() <= place.begin) before += (from++)->size();
      const uint64_t end = std::min(place.end, before + from->size());
      const Range range = {from->begin + (place.begin - before), from->begin + (end - before)};
      if (!positions.empty() && positions.back().end == range.begin) {
        positions.back().end = range.end;
      } else {
        positions.push_back(range);
      }
      place.begin = end;
    }
  }
  return positions;
}

}  // namespace

absl::StatusOr<Division> Division::Make(uint64_t samples, std::vector<DataGeneration> generations) {
  if (generations.empty()) return absl::InvalidArgumentError("the division of the data has no generation");
  for (const DataGeneration& generation : generations) {
    for (const GroupShare& group : generation.groups) {
      if (group.ranks == 0 || group.batch == 0) {
        return absl::InvalidArgumentError("a group has no ranks, or a batch of no samples");
      }
    }
    const uint64_t all = StepSamples(generation.groups);
    if (all > 0 && all <= samples) continue;
    return absl::InvalidArgumentError(absl::StrCat("one step of all groups takes ", all,
                                                   " samples, and the training data has ", samples,
                                                   "; take a smaller batch_size, or fewer groups or ranks"));
  }
  Division division(samples, generations.front().groups);
  for (size_t i = 1; i < generations.size(); ++i) {
    Division next(samples, generations[i].groups);
    next.Follow(division, generations[i - 1].groups, generations[i].first_step);
    division = std::move(next);
  }
  return division;
}

Division::Division(uint64_t samples, const std::vector<GroupShare>& groups)
    : samples_(samples), step_samples_(StepSamples(groups)), steps_per_epoch_(samples / step_samples_) {}

Division::Part Division::WholePart(uint64_t epoch) const {
  const uint64_t first = whole_step_ + (epoch - whole_epoch_) * steps_per_epoch_;
  return {epoch, first, steps_per_epoch_, {{0, samples_}}, samples_};
}

Division::Part Division::LeftOf(const Part& part, const std::vector<GroupShare>& groups) {
  Ranges places;
  uint64_t begin = 0;  // Where the rank's share of the part begins.
  bool over = true;
  for (const GroupShare& group : groups) {
    const uint64_t done = StepsIn(part, group);
    over = over && done == part.steps;
    for (uint32_t rank = 0; rank < group.ranks; ++rank) {
      const uint64_t end = begin + part.steps * group.batch;
      if (done < part.steps) places.push_back({begin + done * group.batch, end});
      begin = end;
    }
  }
  Part left = part;
  if (begin < part.samples) places.push_back({begin, part.samples});
  left.left = over ? Ranges() : PositionsAt(part.left, places);
  left.samples = 0;
  for (const Range& range : left.left) left.samples += range.size();
  return left;
}

void Division::Follow(const Division& before, const std::vector<GroupShare>& groups, uint64_t first_step) {
  uint64_t last = 0;
  for (const GroupShare& group : groups) last = std::max(last, group.last_step);
  first_step_ = std::max(first_step, last);
  uint64_t step = first_step_;
  const auto add = [&](Part part) {
    part.first_step = step;
    part.steps = part.samples / step_samples_;
    step += part.steps;
    if (part.steps > 0) parts_.push_back(std::move(part));
  };
  for (const Part& part : before.parts_) {
    Part left = LeftOf(part, groups);
    // An epoch that no group had begun has all of its list left.
    if (left.samples > 0) add(std::move(left));
  }
  whole_epoch_ = before.whole_epoch_;
  uint64_t least = last;
  for (const GroupShare& group : groups) least = std::min(least, group.last_step);
  // Whole epochs that all groups have finished are over.
  if (least > before.whole_step_) whole_epoch_ += (least - before.whole_step_) / before.steps_per_epoch_;
  for (Part part = before.WholePart(whole_epoch_); part.first_step < last; part = before.WholePart(++whole_epoch_)) {
    add(LeftOf(part, groups));
  }
  whole_step_ = step;
}

Division::Part Division::PartOf(uint64_t step) const {
  for (const Part& part : parts_) {
    if (step < part.first_step + part.steps) return part;
  }
  return WholePart(whole_epoch_ + (step - whole_step_) / steps_per_epoch_);
}

uint64_t Division::StepsTotal(uint64_t epochs) const {
  uint64_t total = whole_step_;
  if (epochs > whole_epoch_) return total + (epochs - whole_epoch_) * steps_per_epoch_;
  for (auto part = parts_.rbegin(); part != parts_.rend() && part->epoch >= epochs; ++part) total = part->first_step;
  return total;
}

double Division::EpochAt(uint64_t step) const {
  const double steps = static_cast<double>(step) - static_cast<double>(whole_step_);
  return std::max(0.0, static_cast<double>(whole_epoch_) + steps / static_cast<double>(steps_per_epoch_));
}

uint64_t Division::EpochsEndedBy(uint64_t step) const {
  for (const Part& part : parts_) {
    if (part.first_step + part.steps == step) return part.epoch + 1;
  }
  if (step <= whole_step_ || (step - whole_step_) % steps_per_epoch_ != 0) return 0;
  return whole_epoch_ + (step - whole_step_) / steps_per_epoch_;
}

}  // namespace hooke
