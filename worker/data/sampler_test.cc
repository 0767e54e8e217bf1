#include "worker/data/sampler.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

// Returns all indices of one epoch of one rank, step after step.
std::vector<uint32_t> EpochOf(const SamplerOptions& options, uint64_t epoch) {
  auto sampler = Sampler::Make(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  std::vector<uint32_t> indices;
  for (uint64_t s = 0; s < sampler->division().steps_per_epoch(); ++s) {
    const auto batch = sampler->BatchIndices(epoch * sampler->division().steps_per_epoch() + s);
    EXPECT_EQ(batch.size(), options.batch);
    indices.insert(indices.end(), batch.begin(), batch.end());
  }
  return indices;
}

struct Sizes {
  uint64_t samples;
  uint32_t groups;
  uint32_t ranks;
  uint32_t batch;
  uint64_t seen;  // Samples that all ranks together see in an epoch.
};

const Sizes kSizes[] = {{1, 1, 1, 1, 1},    {100, 1, 1, 7, 98},   {100, 2, 2, 25, 100},    {100, 2, 2, 24, 96},
                        {101, 3, 5, 2, 90}, {997, 4, 3, 10, 960}, {1000, 10, 10, 10, 1000}};

// In an epoch no sample is given to two ranks of any groups, nor twice to one rank. Together the ranks see all samples
// except the few that do not fill a batch for each rank.
TEST(SamplerTest, RanksAndGroupsNeverOverlap) {
  for (const Sizes& sizes : kSizes) {
    for (uint64_t epoch : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message() << sizes.samples << " samples, epoch " << epoch);
      std::vector<uint32_t> seen;
      SamplerOptions options{sizes.samples, sizes.groups, sizes.ranks, sizes.batch, 3};
      for (options.group = 0; options.group < sizes.groups; ++options.group) {
        for (options.rank = 0; options.rank < sizes.ranks; ++options.rank) {
          const std::vector<uint32_t> share = EpochOf(options, epoch);
          seen.insert(seen.end(), share.begin(), share.end());
        }
      }
      EXPECT_EQ(seen.size(), sizes.seen);
      EXPECT_EQ(std::set<uint32_t>(seen.begin(), seen.end()).size(), seen.size());
      EXPECT_LT(*std::max_element(seen.begin(), seen.end()), sizes.samples);
    }
  }
}

// Groups of different sizes and batches make equally many steps, and see no sample twice.
TEST(SamplerTest, GroupsThatAreNotAlikeNeverOverlap) {
  struct Group {
    uint32_t ranks;
    uint32_t batch;
  };
  const std::vector<Group> groups = {{4, 8}, {1, 3}, {2, 5}};
  SamplerOptions options;
  options.samples = 1000;
  options.groups = 3;
  options.seed = 3;
  options.group_samples = {32, 3, 10};
  std::vector<uint32_t> seen;
  for (options.group = 0; options.group < groups.size(); ++options.group) {
    options.ranks = groups[options.group].ranks;
    options.batch = groups[options.group].batch;
    for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
      const std::vector<uint32_t> share = EpochOf(options, 2);
      EXPECT_EQ(share.size(), 22 * options.batch);
      seen.insert(seen.end(), share.begin(), share.end());
    }
  }
  EXPECT_EQ(seen.size(), 22u * 45);
  EXPECT_EQ(std::set<uint32_t>(seen.begin(), seen.end()).size(), seen.size());
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 1000u);

  options.group = 2;
  options.rank = 0;
  options.samples = 44;
  EXPECT_EQ(
      Sampler::Make(options).status().message(),
      "one step of all groups takes 45 samples, and the training data has 44; take a smaller batch_size, or fewer "
      "groups or ranks");
  options.batch = 6;
  EXPECT_EQ(Sampler::Make(options).status().code(), absl::StatusCode::kInvalidArgument);
}

// The number of steps is floor(N / (groups * ranks * batch)).
TEST(SamplerTest, StepsPerEpoch) {
  struct Row {
    SamplerOptions options;
    uint64_t steps;
  };
  for (const Row& row : {Row{{60000, 2, 2, 64}, 234}, Row{{60000, 1, 4, 64}, 234}, Row{{60000, 1, 1, 64}, 937},
                         Row{{256, 2, 2, 64}, 1}, Row{{511, 2, 2, 64}, 1}, Row{{512, 2, 2, 64}, 2}}) {
    auto sampler = Sampler::Make(row.options);
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    EXPECT_EQ(sampler->division().steps_per_epoch(), row.steps);
  }
}

// A sampler that starts at any step, or goes back, gives the same batches as one that runs from step 0.
TEST(SamplerTest, ResumesAtAnyStep) {
  const SamplerOptions options{103, 2, 2, 5, 9, 1, 0};
  auto running = Sampler::Make(options);
  ASSERT_TRUE(running.ok());
  std::vector<std::vector<uint32_t>> batches;
  for (uint64_t step = 0; step < 23; ++step) {
    const auto batch = running->BatchIndices(step);
    batches.emplace_back(batch.begin(), batch.end());
    auto resumed = Sampler::Make(options);
    ASSERT_TRUE(resumed.ok());
    EXPECT_EQ(resumed->BatchIndices(step), batch) << step;
  }
  for (uint64_t step : {22, 3, 0, 21}) EXPECT_EQ(running->BatchIndices(step), batches[step]) << step;
}

// Each epoch gives another order, and so does each seed, whether the low or the high half of its bits differs. Equal
// seed and epoch give the same order.
TEST(PermutationTest, DiffersByEpochAndSeed) {
  const std::vector<uint32_t> first = Permutation({100, 1, 0});
  EXPECT_EQ(Permutation({100, 1, 0}), first);
  EXPECT_NE(Permutation({100, 1, 1}), first);
  EXPECT_NE(Permutation({100, 2, 0}), first);
  EXPECT_NE(Permutation({100, 1 + (uint64_t{1} << 32), 0}), first);
  EXPECT_NE(Permutation({100, 0, 1}), first);
}

// The result is a permutation for any number of samples, even the smallest.
TEST(PermutationTest, HoldsEachSampleOnce) {
  for (uint32_t samples : {0, 1, 2, 3, 100, 4097}) {
    std::vector<uint32_t> order = Permutation({samples, 7, 7});
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), samples);
    for (uint32_t i = 0; i < samples; ++i) ASSERT_EQ(order[i], i);
  }
}

// All orders are equally likely: over 24000 epochs each of the 24 orders of 4 samples comes about 1000 times, within 5
// standard deviations.
TEST(PermutationTest, IsUniform) {
  std::vector<std::vector<uint32_t>> orders;
  for (uint64_t epoch = 0; epoch < 24000; ++epoch) orders.push_back(Permutation({4, 11, epoch}));
  std::sort(orders.begin(), orders.end());
  int kinds = 0;
  for (auto first = orders.begin(); first != orders.end();) {
    const auto end = std::upper_bound(first, orders.end(), *first);
    EXPECT_NEAR(end - first, 1000, 155);
    first = end;
    ++kinds;
  }
  EXPECT_EQ(kinds, 24);
}

// The order must never change and must be the same on all platforms, because groups on different machines cut the same
// permutation.
TEST(PermutationTest, IsTheAgreedOrder) {
  EXPECT_EQ(Permutation({10, 1, 0}), (std::vector<uint32_t>{2, 1, 8, 9, 6, 7, 3, 5, 0, 4}));
}

// The error names the option that is out of range. For a batch that does not fit the data it gives the numbers.
TEST(SamplerTest, RefusesWrongOptions) {
  struct Row {
    SamplerOptions options;
    std::string message;
  };
  const Row rows[] = {
      {{100, 0, 1, 1}, "sampler: groups is 0; allowed is groups >= 1"},
      {{100, 1, 0, 1}, "sampler: ranks is 0; allowed is ranks >= 1"},
      {{100, 1, 1, 0}, "sampler: batch is 0; allowed is batch >= 1"},
      {{100, 2, 1, 1, 0, 2, 0}, "sampler: group is 2; allowed is group < 2"},
      {{100, 2, 3, 1, 0, 1, 3}, "sampler: rank is 3; allowed is rank < 3"},
      {{uint64_t{1} << 32, 1, 1, 1},
       "sampler: the training data has 4294967296 samples; at most 4294967295 are supported"},
      {{255, 2, 2, 64},
       "one step of 2 groups x 2 ranks x batch 64 takes more samples than the training data's 255; take a smaller "
       "train.batch_size, groups.count or groups.ranks"},
      {{100, 4294967295, 4294967295, 4294967295},
       "one step of 4294967295 groups x 4294967295 ranks x batch 4294967295 takes more samples than the training "
       "data's 100; take a smaller train.batch_size, groups.count or groups.ranks"},
  };
  for (const Row& row : rows) {
    const absl::Status status = Sampler::Make(row.options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_EQ(std::string(status.message()), row.message);
  }
}

}  // namespace
}  // namespace hooke
