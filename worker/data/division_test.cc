#include "worker/data/division.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> ListOf(const Division::Part& part) {
  std::vector<uint64_t> list;
  for (const Range& range : part.left) {
    for (uint64_t at = range.begin; at < range.end; ++at) list.push_back(at);
  }
  return list;
}

// Adds to `taken` how often the groups of a generation take each (epoch, position), up to each group's last step.
void Take(const Division& division, const DataGeneration& generation,
          std::map<std::pair<uint64_t, uint64_t>, int>& taken) {
  uint64_t shares_before = 0;  // Samples of one step that belong to the ranks handled so far.
  for (const GroupShare& group : generation.groups) {
    for (uint32_t rank = 0; rank < group.ranks; ++rank) {
      for (uint64_t step = division.first_step(); step < group.last_step; ++step) {
        const Division::Part part = division.PartOf(step);
        const std::vector<uint64_t> list = ListOf(part);
        const uint64_t begin = shares_before * part.steps + (step - part.first_step) * group.batch;
        for (uint64_t i = 0; i < group.batch; ++i) ++taken[{part.epoch, list.at(begin + i)}];
      }
      shares_before += group.batch;
    }
  }
}

TEST(DivisionTest, TheFirstGenerationDividesWholeEpochs) {
  const Division division = *Division::Make(25, {{0, {{1, 2}, {2, 2}}}});
  EXPECT_EQ(division.steps_per_epoch(), 4u);  // 25 / 6.
  EXPECT_EQ(division.StepsTotal(3), 12u);
  EXPECT_EQ(division.PartOf(5).epoch, 1u);
  EXPECT_EQ(division.PartOf(5).first_step, 4u);
  EXPECT_EQ(division.PartOf(5).samples, 25u);
  EXPECT_DOUBLE_EQ(division.EpochAt(6), 1.5);
  EXPECT_EQ(division.EpochsEndedBy(4), 1u);
  EXPECT_EQ(division.EpochsEndedBy(5), 0u);
}

// Group 0 of batch 2 has 12 samples: 6 steps. It leaves after 2 steps. Then two groups of batch 2 divide the other 8
// samples.
TEST(DivisionTest, TheNextGenerationDividesWhatIsLeft) {
  const Division division = *Division::Make(12, {{0, {{1, 2, 2}}}, {2, {{1, 2}, {1, 2}}}});
  const Division::Part part = division.PartOf(2);
  EXPECT_EQ(part.epoch, 0u);
  EXPECT_EQ(part.steps, 2u);
  EXPECT_THAT(ListOf(part), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_DOUBLE_EQ(division.EpochAt(2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(division.EpochAt(4), 1.0);
  EXPECT_EQ(division.EpochsEndedBy(4), 1u);
  EXPECT_EQ(division.StepsTotal(1), 4u);
  EXPECT_EQ(division.StepsTotal(2), 7u);
}

// Group 0 is in epoch 1, group 1 still in epoch 0: both epochs are partly left.
TEST(DivisionTest, GroupsMayBeInDifferentEpochs) {
  const Division division = *Division::Make(8, {{0, {{1, 1, 6}, {1, 1, 3}}}, {6, {{1, 1}}}});
  EXPECT_THAT(ListOf(division.PartOf(6)), ElementsAre(7));
  EXPECT_EQ(division.PartOf(6).epoch, 0u);
  EXPECT_THAT(ListOf(division.PartOf(7)), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_EQ(division.PartOf(7).epoch, 1u);
  EXPECT_EQ(division.PartOf(13).epoch, 2u);
  // 9 of 16 samples were trained.
  EXPECT_DOUBLE_EQ(division.EpochAt(6), 9.0 / 8);
  EXPECT_DOUBLE_EQ(division.EpochAt(13), 2.0);
  EXPECT_EQ(division.StepsTotal(2), 13u);
}

// A rest of an epoch that does not fill a step of all groups of the next generation is left out. So a job of one epoch
// has no step left then.
TEST(DivisionTest, ARestThatFillsNoStepIsLeftOut) {
  const Division division = *Division::Make(7, {{0, {{1, 1, 5}}}, {5, {{1, 3}}}});
  EXPECT_EQ(division.PartOf(5).epoch, 1u);
  EXPECT_EQ(division.StepsTotal(1), 5u);
  EXPECT_DOUBLE_EQ(division.EpochAt(5), 1.0);
  // All groups have finished epoch 0, so that its rest is not handed out later.
  const Division ended = *Division::Make(7, {{0, {{1, 3, 2}}}, {2, {{1, 1}}}});
  EXPECT_EQ(ended.PartOf(2).epoch, 1u);
}

TEST(DivisionTest, BadOnesAreRefused) {
  EXPECT_EQ(Division::Make(7, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Division::Make(7, {{0, {}}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Division::Make(7, {{0, {{1, 0}}}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Division::Make(7, {{0, {{2, 4}}}}).status().code(), absl::StatusCode::kInvalidArgument);
}

// At random: whoever comes and goes, no sample is taken twice in an epoch, and what is missing fills no step.
TEST(DivisionTest, EverySampleOnceWhoeverComesAndGoes) {
  std::mt19937 random(7);
  const auto draw = [&random](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t samples = draw(20, 60);
    const uint64_t epochs = 3;
    std::vector<DataGeneration> generations;
    std::map<std::pair<uint64_t, uint64_t>, int> taken;
    uint64_t missing_max = 0;
    const uint64_t count = draw(1, 4);
    for (uint64_t number = 0; number < count; ++number) {
      DataGeneration& generation = generations.emplace_back();
      for (const DataGeneration& earlier : generations) {
        for (const GroupShare& group : earlier.groups) {
          generation.first_step = std::max(generation.first_step, group.last_step);
        }
      }
      generation.groups.resize(draw(1, 3));
      uint64_t step_samples = 0;
      for (GroupShare& group : generation.groups) {
        group = {static_cast<uint32_t>(draw(1, 2)), static_cast<uint32_t>(draw(1, 3))};
        step_samples += group.samples();
      }
      missing_max += step_samples - 1;
      const Division division = *Division::Make(samples, generations);
      EXPECT_EQ(division.first_step(), generation.first_step);
      const uint64_t total = division.StepsTotal(epochs);
      for (GroupShare& group : generation.groups) {
        const bool last = number + 1 == count;
        group.last_step = last ? total : draw(division.first_step(), total);
      }
      for (uint64_t step = division.first_step(); step < total; ++step) {
        EXPECT_LT(division.EpochAt(step), division.EpochAt(step + 1) + 1e-9);
        EXPECT_LE(division.EpochAt(step), epochs);
      }
      Take(division, generation, taken);
    }
    std::map<uint64_t, uint64_t> of_epoch;
    for (const auto& [what, times] : taken) {
      EXPECT_EQ(times, 1) << "epoch " << what.first << " position " << what.second << " trial " << trial;
      ++of_epoch[what.first];
    }
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      EXPECT_LE(of_epoch[epoch], samples);
      EXPECT_GE(of_epoch[epoch] + missing_max, samples) << "trial " << trial;
    }
    EXPECT_LE(of_epoch.size(), epochs);
  }
}

}  // namespace
}  // namespace hooke
